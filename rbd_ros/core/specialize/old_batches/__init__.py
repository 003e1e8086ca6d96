"""Batches by specialized code: blocks of SIMD lanes, shared by threads."""
