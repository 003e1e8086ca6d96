"""Models from files (URDF, SRDF, YAML of constraints) and screws; sizes are limited before parsing."""
