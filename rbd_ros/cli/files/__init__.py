"""Robots and files that are named on the command line."""
