"""Distances between links, and from links to obstacles."""
