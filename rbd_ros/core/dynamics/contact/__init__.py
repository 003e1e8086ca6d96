"""Contact of curved surfaces: closest points, contact kinematics, rows of constraints."""
