"""Fixtures of more than one folder."""
from support.launching import launch  # noqa: F401
