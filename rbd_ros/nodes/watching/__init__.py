"""Listeners to other nodes."""
