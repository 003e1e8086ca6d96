"""Motions of closed-loop mechanisms in independent coordinates."""
