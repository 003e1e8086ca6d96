"""The private DDS domain and the compiled kernels of the tests of nodes."""
from nodes.conftest import compiled_kernels, private_domain  # noqa: F401
