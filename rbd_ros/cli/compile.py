"""`rbd compile`: compile every kernel into the cache."""
from __future__ import annotations

import argparse
import importlib
import pkgutil

from .. import core
from ..core.compile import COMPILED, compile_all
from ..core.errors import RbdError
from ..core.kernel_cache import cache_directory
from ..signals import interruptible


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rbd compile`."""
    parser.add_argument("--quiet", action="store_true", help="print the last line only")


def run(namespace: argparse.Namespace) -> int:
    """Compile all, or raise `RbdError` where numba is missing."""
    if not COMPILED:
        raise RbdError("numba is not available, so there is nothing to compile: install numba, and unset "
                       "RBD_DISABLE_COMPILE")
    import_kernels()
    with interruptible():    # as other processes do the work
        seconds = compile_all(None if namespace.quiet else lambda line: print(line, flush=True))
    print(f"kernels ready in {cache_directory()} ({seconds:.1f} s)")
    return 0


def import_kernels() -> None:
    """Import every module of the library, so that all kernels are known."""
    for module in pkgutil.walk_packages(core.__path__, core.__name__ + "."):
        importlib.import_module(module.name)
