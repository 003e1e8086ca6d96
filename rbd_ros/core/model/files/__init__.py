"""Models from files and screws: URDF, SRDF, YAML of constraints; text is bounded before it is parsed."""
