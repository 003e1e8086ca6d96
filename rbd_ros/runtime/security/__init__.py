"""Access control of ROS topics and services: rights of each node by its parameters, and SROS2 policies of them."""
