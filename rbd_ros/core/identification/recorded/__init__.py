"""Recordings: read, cleaned, filtered."""
