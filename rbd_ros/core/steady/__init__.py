"""Steady cycles: the uninterrupted control cycle as one compiled call."""
