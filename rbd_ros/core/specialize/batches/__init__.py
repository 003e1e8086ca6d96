"""Many states by a robot's own code: in blocks of lanes, shared by threads."""
