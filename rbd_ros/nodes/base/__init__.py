"""Common parts of nodes, and all uses of rclpy internals."""
