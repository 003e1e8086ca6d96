"""Timing of a given path: the fastest way along it."""
