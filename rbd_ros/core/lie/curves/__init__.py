"""Metrics on SE(3) and their shortest curves."""
