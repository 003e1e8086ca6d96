"""Control laws and controllers: logic without ROS that the nodes call."""
