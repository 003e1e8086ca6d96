"""Inputs: validated, counted, mapped by name; a rejected message changes nothing."""
