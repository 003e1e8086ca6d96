"""Decisions of running programs: time is an argument, there is no ROS, and no mathematics of its own."""
