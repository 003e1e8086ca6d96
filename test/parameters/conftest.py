"""The private DDS domain of the tests of nodes."""
from nodes.conftest import private_domain  # noqa: F401
