"""Steady cycles: the ordinary control cycle as one compiled call."""
