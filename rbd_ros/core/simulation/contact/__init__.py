"""Unilateral contacts with Coulomb friction, of a simulated robot."""
