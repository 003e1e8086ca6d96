"""Specialized code of one robot: kernels traced once on symbols, and printed as straight-line programs."""
