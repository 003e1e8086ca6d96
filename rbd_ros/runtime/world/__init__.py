"""Mounting of the robot: at an angle, or on a moving base."""
