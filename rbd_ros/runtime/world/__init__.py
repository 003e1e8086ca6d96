"""How the robot stands in the world: mounted at an angle, or on a base that moves."""
