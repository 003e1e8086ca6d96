"""Trajectories in time: interpolation, optimisation, and limits."""
