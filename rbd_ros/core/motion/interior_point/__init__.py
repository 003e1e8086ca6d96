"""The solver of optimal motions: a primal-dual interior point method on banded equations."""
