"""Steady cycles: what controllers do in each cycle while nothing is unusual, in one compiled call."""
