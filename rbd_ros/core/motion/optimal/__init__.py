"""Optimal motions: the problem on nodes, its solution, the certificate."""
