"""Control loop of torque nodes: waiting for joint states, and scheduling."""
