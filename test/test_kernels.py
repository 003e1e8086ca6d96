"""Kernels and sweeps do without reference counts, so none of them may allocate or return an array."""
from __future__ import annotations

import ast
from pathlib import Path

import pytest

CORE = Path(__file__).parents[1] / "rbd_ros" / "core"
ALLOCATE = {"empty", "zeros", "ones", "full", "array", "copy", "zeros_like", "empty_like", "arange", "reshape"}


def bare(source):
    """The functions of a file that are decorated with `kernel` or `sweep`."""
    return [item for item in ast.walk(ast.parse(source)) if isinstance(item, ast.FunctionDef)
            and any(isinstance(d, ast.Name) and d.id in ("kernel", "sweep") for d in item.decorator_list)]


def complaints(function):
    """What is wrong: allocations, and results that may be arrays (a parameter that is indexed, or a slice)."""
    parameters = {argument.arg for argument in function.args.args}
    indexed = {item.value.id for item in ast.walk(function)
               if isinstance(item, ast.Subscript) and isinstance(item.value, ast.Name)}
    stored = {item.targets[0].value.id for item in ast.walk(function) if isinstance(item, ast.Assign)
              and isinstance(item.targets[0], ast.Subscript) and isinstance(item.targets[0].value, ast.Name)}
    for item in ast.walk(function):
        if isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute) and item.func.attr in ALLOCATE:
            yield f"{function.name}:{item.lineno} allocates by {item.func.attr}"
        if isinstance(item, ast.Return) and item.value is not None:
            results = item.value.elts if isinstance(item.value, ast.Tuple) else [item.value]
            for result in results:
                if isinstance(result, ast.Subscript) and isinstance(result.slice, ast.Slice):
                    yield f"{function.name}:{item.lineno} returns a slice"
                if isinstance(result, ast.Name) and result.id in parameters & indexed & stored:
                    yield f"{function.name}:{item.lineno} returns the array {result.id}"


FILES = sorted(path for path in CORE.rglob("*.py") if bare(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_kernel_allocates_or_returns_an_array(path):
    assert not [text for function in bare(path.read_text(encoding="utf-8")) for text in complaints(function)]


def test_the_check_finds_what_it_looks_for():
    source = """
@kernel
def one(A, k):
    A[k] = 1.0
    return A

@sweep
def two(n):
    W = np.empty(n)
    W[0] = 1.0
    return W[1:]
"""
    found = [text for function in bare(source) for text in complaints(function)]
    assert len(found) == 3
