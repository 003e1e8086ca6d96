"""Motions that show the parameters."""
