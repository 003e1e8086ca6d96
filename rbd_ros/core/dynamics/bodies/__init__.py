"""Quantities of each body in the recursions: joint wrenches, momenta, articulated and operational-space inertias."""
