"""One robot's own code: its kernels run on symbols once, and printed as straight-line programs."""
