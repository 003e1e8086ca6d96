"""`rbd view`, and the demo in it."""
