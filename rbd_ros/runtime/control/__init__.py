"""Feed-forward laws and everything that keeps their torque safe: pure logic that the nodes call."""
