"""Rigid-body dynamics for feed-forward control."""
