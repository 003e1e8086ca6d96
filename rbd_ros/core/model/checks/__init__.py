"""Checks of descriptions and models: errors and implausible data."""
