"""Motions in time: interpolated trajectories and the limits that they keep."""
