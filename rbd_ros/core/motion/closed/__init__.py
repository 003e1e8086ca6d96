"""Motions of mechanisms with closed loops, by their independent coordinates."""
