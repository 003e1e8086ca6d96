"""The plant of the simulator nodes: commands in, motion out, paced by a clock."""
