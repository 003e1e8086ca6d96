"""What is drawn of a robot, as data."""
