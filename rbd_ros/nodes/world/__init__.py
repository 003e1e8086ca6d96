"""How the robot stands in the world, from topics: `tf_static` and odometry."""
