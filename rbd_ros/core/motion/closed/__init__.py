"""Motions of mechanisms with closed loops: what their independent coordinates make of all others."""
