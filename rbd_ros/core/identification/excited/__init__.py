"""Excitation: motions for identification."""
