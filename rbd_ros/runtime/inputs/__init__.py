"""Validation of inputs, mapped by name; rejected messages are counted and have no effect."""
