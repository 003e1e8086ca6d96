"""What node files are made of, and all that leans on the inside of rclpy."""
