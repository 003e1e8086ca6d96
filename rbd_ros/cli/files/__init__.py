"""Robots and files on the command line."""
