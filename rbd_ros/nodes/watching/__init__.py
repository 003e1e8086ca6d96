"""Nodes that listen to others."""
