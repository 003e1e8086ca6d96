"""Optimal motions requested by joint name, and retiming of trajectories within effort limits."""
