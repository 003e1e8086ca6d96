"""Specialized code of one robot: straight-line programs, traced by running kernels on symbols."""
