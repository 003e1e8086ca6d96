"""Feedback along a motion: gains of the linearised dynamics, their margins, and their export."""
