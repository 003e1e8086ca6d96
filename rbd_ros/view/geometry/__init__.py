"""Geometry of a robot for drawing, as data."""
