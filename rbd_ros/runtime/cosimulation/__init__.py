"""Co-simulation with other simulators, and residuals against the model; without ROS."""
