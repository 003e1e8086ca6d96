"""Dynamics under constraints: closed loops, couplings, contacts (K eq. 56–80)."""
