"""Surfaces on links and the contacts that are declared between them."""
