"""What the recursions know of each body: joint wrenches, momenta, articulated and operational-space inertias."""
