"""`rbd compile`: compile every kernel into the cache, or the code of one robot."""
from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import time

from .. import core
from ..core.ahead import compile_all
from ..core.compile import COMPILED
from ..core.errors import RbdError
from ..core.kernel_cache import cache_directory
from ..core.model.files.urdf import load_urdf
from ..core.model.samples import sample_names, sample_path
from ..core.specialize.functions import FUNCTIONS
from ..core.specialize.specialized import specialize
from ..signals import interruptible


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rbd compile`."""
    parser.add_argument("--quiet", action="store_true", help="print the last line only")
    parser.add_argument("--urdf", help="make the code of `rbd.specialize` for this robot, instead of the kernels: a "
                                       f"robot description, or a sample: {', '.join(sample_names())}")
    parser.add_argument("--root", choices=("fixed", "floating"), default="fixed", help="how its base link stands")
    parser.add_argument("--functions", nargs="+", default=list(FUNCTIONS), choices=FUNCTIONS, metavar="FUNCTION",
                        help=f"of {', '.join(FUNCTIONS)} (default: all)")


def run(namespace: argparse.Namespace) -> int:
    """Compile what is asked for, or raise `RbdError` where numba is missing."""
    if not COMPILED:
        raise RbdError("numba is not available, so there is nothing to compile: install numba, and unset "
                       "RBD_DISABLE_COMPILE")
    if namespace.urdf is not None:
        _specialize(namespace)
        return 0
    import_kernels()
    with interruptible():    # as other processes do the work
        seconds = compile_all(None if namespace.quiet else lambda line: print(line, flush=True))
    print(f"kernels ready in {cache_directory()} ({seconds:.1f} s)")
    return 0


def import_kernels() -> None:
    """Import every module of the library, so that all kernels are known."""
    for module in pkgutil.walk_packages(core.__path__, core.__name__ + "."):
        importlib.import_module(module.name)


def _specialize(namespace: argparse.Namespace) -> None:
    """Make the code of one robot, function by function."""
    path = sample_path(namespace.urdf) if namespace.urdf in sample_names() else namespace.urdf
    model = load_urdf(path, root=namespace.root)
    begin, made, count = time.perf_counter(), 0, len(namespace.functions)
    for number, name in enumerate(namespace.functions, 1):
        if not namespace.quiet and sys.stdout.isatty() and time.perf_counter() - begin > 1.0:
            print(f"[{number}/{count}] {name} …", flush=True)
        has_code = specialize(model, functions=[name]).has_code(name)
        made += has_code
        if not has_code and not namespace.quiet:
            print(f"{name}: no code of its own, the ordinary kernels compute it", flush=True)
    print(f"'{model.name}', {model.nv} velocity coordinates: code of {made} of {count} functions ready in "
          f"{cache_directory() / 'specialize'} ({time.perf_counter() - begin:.1f} s)")
