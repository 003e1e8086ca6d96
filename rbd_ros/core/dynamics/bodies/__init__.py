"""Quantities per body: joint wrenches, momenta, articulated and operational-space inertias."""
