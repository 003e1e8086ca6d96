"""Steady cycles: the ordinary cycle of a controller in one compiled call."""
