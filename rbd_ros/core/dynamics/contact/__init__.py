"""Contact of curved surfaces: where they touch, how the contact moves, rows of constraints."""
