"""`rbd compile`: compile every kernel into the cache, or the code of one robot."""
from __future__ import annotations

import argparse
import sys
import time
import warnings

from ..core.compiled.ahead import compile_all
from ..core.compiled.kernel import COMPILED
from ..core.errors import RbdError, RbdWarning
from ..core.compiled.cache import cache_directory, is_writable
from ..core.specialize.families import FAMILIES, function_of
from ..core.specialize.functions import FUNCTIONS
from ..core.specialize.specialized import specialize
from ..signals import ends_at_once
from .files.robot import add_robot, load_robot, named


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rbd compile`."""
    parser.add_argument("--quiet", action="store_true", help="print the last line only")
    add_robot(parser, nargs="?", old="--urdf", help="make the code of `rbd.specialize` for this robot, instead of the "
                                                    "kernels: ")
    parser.add_argument("--root", choices=("fixed", "floating"), default="fixed", help="how its base link stands")
    parser.add_argument("--functions", nargs="+", default=list(FUNCTIONS), metavar="FUNCTION",
                        help=f"of {', '.join(FUNCTIONS)} (default: all of these), {', '.join(FAMILIES)}; the latter "
                             "with parameters, as jacobian:tool0:world")


def run(namespace: argparse.Namespace) -> int:
    """Compile the requested code; raises `RbdError` if numba is missing."""
    if not COMPILED:
        raise RbdError("numba is not available, so there is nothing to compile: install numba, and unset "
                       "RBD_DISABLE_COMPILE")
    if not is_writable():
        raise RbdError(f"nothing can be stored in {cache_directory()}, so that compiling ahead is useless: make it a "
                       "folder that only you may write, or set RBD_CACHE_DIR")
    if named(namespace) is not None:
        with ends_at_once("compile"):
            _specialize(namespace)
        return 0
    with ends_at_once("compile"):    # and its worker processes
        seconds = compile_all(None if namespace.quiet else lambda line: print(line, flush=True))
    print(f"kernels ready in {cache_directory()} ({seconds:.1f} s)")
    return 0


def _specialize(namespace: argparse.Namespace) -> None:
    """Compile the code of one robot, function by function."""
    model = load_robot(namespace, root=namespace.root)
    for name in namespace.functions:    # reject unknown names before compiling
        function_of(model, name)
    begin, compiled, count = time.perf_counter(), 0, len(namespace.functions)
    for number, name in enumerate(namespace.functions, 1):
        if not namespace.quiet and sys.stdout.isatty() and time.perf_counter() - begin > 1.0:
            print(f"[{number}/{count}] {name} …", flush=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RbdWarning)    # printed below
            result, = specialize(model, functions=[name]).functions.values()
        compiled += isinstance(result, int)
        if not isinstance(result, int) and not namespace.quiet:
            print(f"{result}; the ordinary kernels compute it", flush=True)
    print(f"'{model.name}', {model.nv} velocity coordinates: code of {compiled} of {count} functions ready in "
          f"{cache_directory() / 'specialize'} ({time.perf_counter() - begin:.1f} s)")
