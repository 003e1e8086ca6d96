"""Who may do what on ROS topics and services: rights of each node by its parameters, and SROS2 policies of them."""
