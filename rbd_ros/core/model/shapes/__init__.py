"""Shapes of links, for drawing and for collisions."""
