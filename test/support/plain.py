"""Kernels in plain Python, for complex numbers: to compile them for these takes longer than all tests that use them."""
from rbd_ros.core.specialize.plain import Plain

plain = Plain({})
