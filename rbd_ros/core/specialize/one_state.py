"""A robot's own code for one state, as a function of CPython: what calling it takes is a third of numba's way.

The LLVM text of a program for one state is followed by an entry in the form that CPython calls (`METH_FASTCALL`). It
reads its arguments through the buffer protocol and uses functions of the stable C API alone, so it knows nothing of how
objects of CPython or NumPy lie in memory. It holds the interpreter's lock and keeps its numbers on the stack: threads
may share it. Where an argument is not what it takes, or the code is not for the state, it returns None.
"""
from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import program as p
from .llvm import Printer
from .machine import address_of
from .program import NoProgram, Program

Shape = tuple[int, ...]
LONGEST = 15_000    # operations: of more, translating takes minutes
_SIZE = f"i{8 * struct.calcsize('n')}"    # Py_ssize_t
_FORMAT, _ND, _WRITABLE, _FASTCALL = 4, 8, 1, 0x80    # PyBUF_…, METH_FASTCALL
_API = ("PyBuffer_Release", "PyErr_Clear", "PyFloat_FromDouble", "PyObject_CallObject", "PyObject_GetBuffer",
        "PyTuple_GetItem", "PyTuple_Pack", "Py_BuildValue", "Py_DecRef")

# Py_buffer: buf, obj, len, itemsize, readonly, ndim, format, shape, strides, suboffsets, internal
_HELPERS = f"""
%view = type {{ ptr, ptr, {_SIZE}, {_SIZE}, i32, i32, ptr, ptr, ptr, ptr, ptr }}
@nothing = private constant [1 x i8] zeroinitializer
declare void @PyBuffer_Release(ptr)
declare void @PyErr_Clear()
declare ptr @PyFloat_FromDouble(double)
declare ptr @PyObject_CallObject(ptr, ptr)
declare i32 @PyObject_GetBuffer(ptr, ptr, i32)
declare ptr @PyTuple_GetItem(ptr, {_SIZE})
declare ptr @PyTuple_Pack({_SIZE}, ...)
declare ptr @Py_BuildValue(ptr, ...)
declare void @Py_DecRef(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; where the numbers of a one-dimensional contiguous array of this many doubles are; null for all else
define internal ptr @numbers(ptr %object, ptr %view, {_SIZE} %size) {{
  %failed = call i32 @PyObject_GetBuffer(ptr %object, ptr %view, i32 {_ND | _FORMAT})
  %none = icmp ne i32 %failed, 0
  br i1 %none, label %clear, label %dimension
clear:
  call void @PyErr_Clear()
  ret ptr null
dimension:
  %ndim.at = getelementptr %view, ptr %view, i32 0, i32 5
  %ndim = load i32, ptr %ndim.at
  %vector = icmp eq i32 %ndim, 1
  %format.at = getelementptr %view, ptr %view, i32 0, i32 6
  %format = load ptr, ptr %format.at
  %typed = icmp ne ptr %format, null
  %known = and i1 %vector, %typed
  br i1 %known, label %size_and_type, label %refuse
size_and_type:
  %shape.at = getelementptr %view, ptr %view, i32 0, i32 7
  %shape = load ptr, ptr %shape.at
  %length = load {_SIZE}, ptr %shape
  %fits = icmp eq {_SIZE} %length, %size
  %first = load i8, ptr %format
  %double = icmp eq i8 %first, {ord("d")}
  %accepted = and i1 %fits, %double
  br i1 %accepted, label %end, label %refuse
end:
  %second.at = getelementptr i8, ptr %format, i32 1
  %second = load i8, ptr %second.at
  %alone = icmp eq i8 %second, 0
  br i1 %alone, label %accept, label %refuse
accept:
  %numbers = load ptr, ptr %view
  ret ptr %numbers
refuse:
  call void @PyBuffer_Release(ptr %view)
  ret ptr null
}}

; a new array, which `empty` makes of these arguments, with so many bytes from there; null where memory is short
define internal ptr @array(ptr %empty, ptr %arguments, ptr %from, i64 %bytes) {{
  %view = alloca %view
  %made = call ptr @PyObject_CallObject(ptr %empty, ptr %arguments)
  %none = icmp eq ptr %made, null
  br i1 %none, label %clear, label %look
look:
  %failed = call i32 @PyObject_GetBuffer(ptr %made, ptr %view, i32 {_WRITABLE})
  %no = icmp ne i32 %failed, 0
  br i1 %no, label %drop, label %copy
copy:
  %to = load ptr, ptr %view
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  call void @PyBuffer_Release(ptr %view)
  ret ptr %made
drop:
  call void @Py_DecRef(ptr %made)
  br label %clear
clear:
  call void @PyErr_Clear()
  ret ptr null
}}
"""


def printed_for_one(program: Program, sizes: Sequence[int], counts: Sequence[int], number: bool) -> str:
    """The text of a module with the entry `call`. sizes: of the inputs; counts: of the arrays of the result.

    number: the result is one number. The entry's `self` is a tuple: what makes arrays (or the number) and a tuple of
    arguments for each of these, then, for several arrays, what makes one of them, and its first argument.
    """
    if program.operations > LONGEST:
        raise NoProgram(f"more than {LONGEST} operations")
    f = Printer(1)
    value: dict[int, str] = {}
    places: dict[int, list[int]] = {}
    for k, i in enumerate(program.outputs):
        places.setdefault(i, []).append(k)
    k = 0
    for array, size in enumerate(sizes):
        for j in range(size):
            value[program.inputs[k].index] = f.put(f"load double, ptr {f.at(f'%in{array}', j)}, align 1")
            k += 1
    for i, node in enumerate(program.nodes):
        if node.op != p.INPUT:
            value[i] = f.operation(node, value)
        for place in places.get(i, ()):    # as soon as it is known: it need not be kept
            f.store(value[i], "%out", place)
    for guard in program.guards:
        f.guard(guard, value)
    looked_at = [value[i] for i in sorted({x.index for x in program.inputs} | set(program.outputs))
                 if program.nodes[i].op != p.CONSTANT]
    while len(looked_at) > 1:    # pairwise: a sum is finite only where all are
        looked_at = [f.do("fadd", *pair) if len(pair) > 1 else pair[0]
                     for pair in (looked_at[i:i + 2] for i in range(0, len(looked_at), 2))]
    f.good.append(f.compare("oeq", f.do("fsub", looked_at[0], looked_at[0]), f.constant(0.0)))
    ok = f.good[0]
    for condition in f.good[1:]:
        ok = f.both(ok, condition)
    inputs = ", ".join(f"ptr noalias %in{k}" for k in range(len(sizes)))
    return "\n".join([_HELPERS, *f.declared(), f"define internal i1 @one({inputs}, ptr noalias %out) {{",
                      *("  " + line for line in f.lines), f"  ret i1 {ok}", "}", *_entry(sizes, counts, number)])


def _entry(sizes: Sequence[int], counts: Sequence[int], number: bool) -> list[str]:
    """`PyObject *call(PyObject *self, PyObject *const *arguments, Py_ssize_t count)`."""
    given = range(len(sizes))
    lines = [f"define ptr @call(ptr %self, ptr %arguments, {_SIZE} %count) {{",
             f"  %out = alloca [{sum(counts)} x double]", "  %good = alloca i1", "  store i1 false, ptr %good",
             *(f"  %view{k} = alloca %view" for k in given),
             f"  %enough = icmp eq {_SIZE} %count, {len(sizes)}",
             "  br i1 %enough, label %take0, label %release0"]
    for k, size in enumerate(sizes):
        lines += [f"take{k}:", f"  %at{k} = getelementptr ptr, ptr %arguments, i32 {k}",
                  f"  %object{k} = load ptr, ptr %at{k}",
                  f"  %in{k} = call ptr @numbers(ptr %object{k}, ptr %view{k}, {_SIZE} {size})",
                  f"  %none{k} = icmp eq ptr %in{k}, null",
                  f"  br i1 %none{k}, label %release{k}, label %take{k + 1}"]
    lines += [f"take{len(sizes)}:",
              f"  %found = call i1 @one({', '.join(f'ptr %in{k}' for k in given)}, ptr %out)",
              "  store i1 %found, ptr %good", f"  br label %release{len(sizes)}"]
    for k in reversed(given):
        lines += [f"release{k + 1}:", f"  call void @PyBuffer_Release(ptr %view{k})", f"  br label %release{k}"]
    lines += ["release0:", "  %is_good = load i1, ptr %good", "  br i1 %is_good, label %make0, label %refuse",
              *(_number() if number else _arrays(counts)),
              "failed:", "  call void @PyErr_Clear()", "  br label %refuse",
              "refuse:", "  %nothing = call ptr (ptr, ...) @Py_BuildValue(ptr @nothing)", "  ret ptr %nothing", "}"]
    return lines


def _item(name: str, k: int) -> str:
    return f"  %{name} = call ptr @PyTuple_GetItem(ptr %self, {_SIZE} {k})"


def _pack(name: str, items: Sequence[str]) -> str:
    listed = ", ".join(f"ptr %{item}" for item in items)
    return f"  %{name} = call ptr ({_SIZE}, ...) @PyTuple_Pack({_SIZE} {len(items)}, {listed})"


def _unless_null(name: str, to: str, otherwise: str) -> list[str]:
    return [f"  %no.{name} = icmp eq ptr %{name}, null", f"  br i1 %no.{name}, label %{otherwise}, label %{to}"]


def _number() -> list[str]:
    return ["make0:", "  %x = load double, ptr %out", "  %float = call ptr @PyFloat_FromDouble(double %x)",
            *_unless_null("float", "pack", "failed"),
            "pack:", _pack("packed", ["float"]), "  call void @Py_DecRef(ptr %float)",
            *_unless_null("packed", "convert", "failed"),
            "convert:", _item("type", 0), "  %number = call ptr @PyObject_CallObject(ptr %type, ptr %packed)",
            "  call void @Py_DecRef(ptr %packed)", *_unless_null("number", "done", "failed"),
            "done:", "  ret ptr %number"]


def _arrays(counts: Sequence[int]) -> list[str]:
    """Each array of the result; of several, what `self` makes of them."""
    last, at, lines = len(counts), 0, list[str]()
    for k, count in enumerate(counts):
        lines += [f"make{k}:", _item(f"empty{k}", 0), _item(f"shape{k}", k + 1),
                  f"  %from{k} = getelementptr double, ptr %out, i64 {at}",
                  f"  %array{k} = call ptr @array(ptr %empty{k}, ptr %shape{k}, ptr %from{k}, i64 {8 * count})",
                  *_unless_null(f"array{k}", f"make{k + 1}", f"drop{k}")]
        at += count
    each = [f"array{k}" for k in range(last)]
    if last == 1:
        return [*lines, "make1:", "  ret ptr %array0", "drop0:", "  br label %refuse"]
    lines += [f"make{last}:", _pack("inner", each), *(f"  call void @Py_DecRef(ptr %{name})" for name in each),
              *_unless_null("inner", "outer", "failed"),
              "outer:", _item("make", last + 1), _item("of", last + 2), _pack("packed", ["of", "inner"]),
              "  call void @Py_DecRef(ptr %inner)", *_unless_null("packed", "convert", "failed"),
              "convert:", "  %result = call ptr @PyObject_CallObject(ptr %make, ptr %packed)",
              "  call void @Py_DecRef(ptr %packed)", *_unless_null("result", "done", "failed"),
              "done:", "  ret ptr %result"]
    for k in reversed(range(last)):
        lines += [f"drop{k}:", *([f"  call void @Py_DecRef(ptr %array{k - 1})", f"  br label %drop{k - 1}"] if k else
                                 ["  br label %refuse"])]
    return lines


class _Method(ctypes.Structure):    # PyMethodDef
    _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
                ("doc", ctypes.c_char_p)]


_made: dict[tuple[str, Any], tuple[Callable[..., Any], _Method]] = {}    # functions, and what CPython reads of them


def function_of(key: str, program: Callable[[], Program], sizes: Sequence[int], shapes: Sequence[Shape],
                result: Any) -> Callable[..., Any]:
    """The function of inputs of these sizes. key: of all that its code depends on; shapes: of the arrays of the result,
    () for a number; result: the tuple that several arrays make.
    """
    if (key, result) in _made:
        return _made[key, result][0]
    number = tuple(shapes) == ((),)
    counts = [int(np.prod(shape)) for shape in shapes]
    _name_functions_of_python()
    address = address_of("call", key, lambda: printed_for_one(program(), sizes, counts, number))
    method = _Method(b"own_code", address, _FASTCALL, None)
    self = (np.float64,) if number else (np.empty, *((shape,) for shape in shapes), tuple.__new__, result)
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)(
        ("PyCFunction_NewEx", ctypes.pythonapi))
    function: Callable[..., Any] = make(ctypes.addressof(method), self, None)
    _made[key, result] = function, method    # which has to live as long
    return function


def _name_functions_of_python() -> None:
    """For the linker."""
    import llvmlite.binding as llvm

    for name in _API:
        llvm.add_symbol(name, ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value)
