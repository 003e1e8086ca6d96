"""Pictures of robots: `rbd view`."""
