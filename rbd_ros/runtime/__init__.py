"""Logic of the nodes, without ROS: time is an argument; mathematics is in `core`."""
