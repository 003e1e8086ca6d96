"""External efforts and wrenches of a running robot."""
