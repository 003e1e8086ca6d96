"""Contacts that let go, of a simulated robot: unilateral ones with Coulomb friction."""
