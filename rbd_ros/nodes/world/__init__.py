"""Mounting and base motion of the robot, from the topics `tf_static` and odometry."""
