"""Models from files: URDF, SRDF, YAML of constraints; text is bounded before it is parsed."""
