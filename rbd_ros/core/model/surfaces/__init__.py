"""Surfaces on links, and contacts between them."""
