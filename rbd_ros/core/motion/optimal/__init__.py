"""Optimal motions: the problem at knots, its solution, the certificate."""
