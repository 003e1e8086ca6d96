"""Optimal motions as requests by name, and given trajectories timed anew within the limits of the efforts."""
