"""`rbd generate --ros2-control`: a controller package for one arm, from templates."""
