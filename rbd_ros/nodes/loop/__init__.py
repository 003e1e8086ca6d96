"""The control loop of torque nodes: what waits for joint states, and with which rights."""
