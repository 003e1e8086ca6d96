"""Task-space conditions of a motion: end poses of bodies, and planes that limit points."""
