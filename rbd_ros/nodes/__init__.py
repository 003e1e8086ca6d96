"""ROS 2 nodes. Only this package imports rclpy; the logic of every node is a class in `rbd_ros.runtime`."""
