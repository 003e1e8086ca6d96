"""What the simulator nodes step: commands in, motion out, in the pace of a clock."""
