"""Specialized code for one state, as a CPython function with a third of numba's call overhead.

The LLVM text of a program for one state is followed by an entry in the form that CPython calls (`METH_FASTCALL`). It
calls functions of the C APIs of Python (the stable one) and NumPy. Of objects it knows the fields of an array alone,
which NumPy's header gives to every extension (`PyArrayObject_fields`): to ask an array for a buffer takes 0.1 µs, so
that is for other arguments. It holds the interpreter's lock and keeps its numbers on the stack: threads may share it.
Where an argument is not what it takes, or the code is not for the state, it returns None.
"""
from __future__ import annotations

import ctypes
import importlib
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import program as p
from .llvm import Printer
from .machine import call_of
from .program import NoProgram, Program

Shape = tuple[int, ...]
LONGEST = 15_000    # operations: of more, translating takes minutes
_SIZE = f"i{8 * struct.calcsize('n')}"    # Py_ssize_t
_FORMAT, _ND, _FASTCALL, _DOUBLE = 4, 8, 0x80, 12    # PyBUF_…, METH_FASTCALL, NPY_DOUBLE
_CARRAY, _NEW = 0x101, 65    # NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED, Py_tp_new
_API = ("PyBuffer_Release", "PyErr_Clear", "PyFloat_FromDouble", "PyObject_CallObject", "PyObject_GetBuffer",
        "PyObject_Type", "PyTuple_GetItem", "PyTuple_Pack", "Py_BuildValue", "Py_DecRef")
# places in the table of NumPy's C API, the same in these versions
_NUMPY_API, _NUMPY_VERSIONS = {"PyArray_Type": 2, "PyArray_New": 93, "PyArray_GetPtr": 160}, ("1", "2")
HEAD = object.__basicsize__    # bytes of an object before its own fields


class ArrayFields(ctypes.Structure):    # PyArrayObject_fields
    _fields_ = [("head", ctypes.c_char * HEAD), ("data", ctypes.c_void_p), ("axes", ctypes.c_int),
                ("shape", ctypes.POINTER(ctypes.c_ssize_t)), ("strides", ctypes.c_void_p), ("base", ctypes.c_void_p),
                ("dtype", ctypes.c_void_p), ("flags", ctypes.c_int)]


# Py_buffer: buf, obj, len, itemsize, readonly, ndim, format, shape, strides, suboffsets, internal
_HELPERS = f"""
%array = type {{ [{HEAD} x i8], ptr, i32, ptr, ptr, ptr, ptr, i32 }}
@float64 = external global i8 declare ptr @PyObject_Type(ptr)
%view = type {{ ptr, ptr, {_SIZE}, {_SIZE}, i32, i32, ptr, ptr, ptr, ptr, ptr }}
@nothing = private constant [1 x i8] zeroinitializer
declare void @PyBuffer_Release(ptr) declare void @PyErr_Clear()
declare ptr @PyFloat_FromDouble(double) declare ptr @PyObject_CallObject(ptr, ptr)
declare i32 @PyObject_GetBuffer(ptr, ptr, i32)
declare ptr @PyTuple_GetItem(ptr, {_SIZE})
declare ptr @PyTuple_Pack({_SIZE}, ...)
declare ptr @Py_BuildValue(ptr, ...) declare void @Py_DecRef(ptr)
declare ptr @PyArray_New(ptr, i32, ptr, i32, ptr, ptr, i32, i32, ptr)
declare ptr @PyArray_GetPtr(ptr, ptr) declare ptr @tuple_new(ptr, ptr, ptr)
@PyArray_Type = external global i8

; where the numbers of a one-dimensional contiguous array of this many doubles are; null for all else
define internal ptr @numbers(ptr %object, ptr %view, {_SIZE} %size) {{
  %type = call ptr @PyObject_Type(ptr %object)
  call void @Py_DecRef(ptr %type)
  %array = icmp eq ptr %type, @PyArray_Type
  br i1 %array, label %fields, label %ask
fields:
  %axes.at = getelementptr %array, ptr %object, i32 0, i32 2
  %axes = load i32, ptr %axes.at
  %dtype.at = getelementptr %array, ptr %object, i32 0, i32 6
  %dtype = load ptr, ptr %dtype.at
  %flags.at = getelementptr %array, ptr %object, i32 0, i32 7
  %flags = load i32, ptr %flags.at
  %layout = and i32 %flags, {_CARRAY}
  %contiguous = icmp eq i32 %layout, {_CARRAY}
  %row = icmp eq i32 %axes, 1
  %real = icmp eq ptr %dtype, @float64 %row.real = and i1 %row, %real
  %usual = and i1 %row.real, %contiguous
  br i1 %usual, label %length.of.array, label %ask
length.of.array:
  %lengths.at = getelementptr %array, ptr %object, i32 0, i32 3
  %lengths = load ptr, ptr %lengths.at
  %given = load {_SIZE}, ptr %lengths
  %right = icmp eq {_SIZE} %given, %size
  br i1 %right, label %take, label %ask
take:
  %owner.at = getelementptr %view, ptr %view, i32 0, i32 1
  store ptr null, ptr %owner.at    ; nothing to release
  %data.at = getelementptr %array, ptr %object, i32 0, i32 1
  %data = load ptr, ptr %data.at
  ret ptr %data
ask:
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
"""


def printed_for_one(program: Program, sizes: Sequence[int], shapes: Sequence[Shape]) -> str:
    """The text of a module with the entry `call`. sizes: of the inputs; shapes: of the arrays of the result, () for a
    number. The entry's `self` is a tuple of the result's class, of a number or of several arrays.
    """
    f = Printer(1)
    value: dict[int, str] = {}
    places: dict[int, list[tuple[str, int]]] = {}
    outputs = iter(program.outputs)
    for array, shape in enumerate(shapes):
        for k in range(math.prod(shape)):
            places.setdefault(next(outputs), []).append((f"%out{array}", k))
    k = 0
    for array, size in enumerate(sizes):
        for j in range(size):
            value[program.inputs[k].index] = f.put(f"load double, ptr {f.at(f'%in{array}', j)}, align 1")
            k += 1
    total = f.constant(0.0)    # finite only if all inputs and results are
    for i, node in enumerate(program.nodes):
        if node.op != p.INPUT:
            value[i] = f.operation(node, value)
        for place in places.get(i, ()):    # as soon as it is known: it need not be kept
            f.store(value[i], *place)
        if node.op == p.INPUT or (i in places and node.op != p.CONSTANT):
            total = f.do("fadd", total, value[i])
    for guard in program.guards:
        f.guard(guard, value)
    f.good.append(f.compare("oeq", f.do("fsub", total, total), f.constant(0.0)))
    ok = f.good[0]
    for condition in f.good[1:]:
        ok = f.both(ok, condition)
    arguments = ", ".join([*(f"ptr noalias %in{k}" for k in range(len(sizes))),
                           *(f"ptr noalias %out{k}" for k in range(len(shapes)))])
    return "\n".join([_HELPERS, f"@operations = constant i64 {program.operations}", *f.declared(),
                      f"define internal i1 @one({arguments}) {{",
                      *("  " + line for line in f.lines), f"  ret i1 {ok}", "}", *_entry(sizes, shapes)])


def _entry(sizes: Sequence[int], shapes: Sequence[Shape]) -> list[str]:
    """`PyObject *call(PyObject *self, PyObject *const *arguments, Py_ssize_t count)`."""
    given, found, number = range(len(sizes)), range(len(shapes)), tuple(shapes) == ((),)
    lines = [*(f"@shape{k} = private constant [{len(shape)} x {_SIZE}] [{', '.join(f'{_SIZE} {n}' for n in shape)}]"
               for k, shape in enumerate(shapes)),
             f"@origin = private constant [{max(map(len, shapes))} x {_SIZE}] zeroinitializer",
             f"define ptr @call(ptr %self, ptr %arguments, {_SIZE} %count) {{",
             "  %good = alloca i1", "  store i1 false, ptr %good", *(["  %out0 = alloca double"] if number else []),
             *(f"  %view{k} = alloca %view" for k in given),
             *(f"  %made{k} = alloca ptr\n  store ptr null, ptr %made{k}" for k in found),
             f"  %enough = icmp eq {_SIZE} %count, {len(sizes)}", "  br i1 %enough, label %take0, label %release0"]
    for k, size in enumerate(sizes):
        lines += [f"take{k}:", f"  %at{k} = getelementptr ptr, ptr %arguments, i32 {k}",
                  f"  %object{k} = load ptr, ptr %at{k}",
                  f"  %in{k} = call ptr @numbers(ptr %object{k}, ptr %view{k}, {_SIZE} {size})",
                  f"  %none{k} = icmp eq ptr %in{k}, null",
                  f"  br i1 %none{k}, label %release{k}, label %take{k + 1}"]
    last = len(sizes)
    lines += [f"take{last}:", "  br label %make0"]
    for k, shape in enumerate(shapes):
        lines += [f"make{k}:"]
        lines += ["  br label %compute"] if number else [
            f"  %array{k} = call ptr @PyArray_New(ptr @PyArray_Type, i32 {len(shape)}, ptr @shape{k}, i32 {_DOUBLE}, "
            "ptr null, ptr null, i32 0, i32 0, ptr null)", f"  store ptr %array{k}, ptr %made{k}",
            *_unless_null(f"array{k}", f"place{k}", f"release{last}"),
            f"place{k}:", f"  %out{k} = call ptr @PyArray_GetPtr(ptr %array{k}, ptr @origin)",
            f"  br label %{f'make{k + 1}' if k + 1 < len(shapes) else 'compute'}"]
    pointers = ", ".join([*(f"ptr %in{k}" for k in given), *(f"ptr %out{k}" for k in found)])
    lines += ["compute:", f"  %found = call i1 @one({pointers})", "  store i1 %found, ptr %good",
              f"  br label %release{last}"]
    for k in reversed(given):
        lines += [f"release{k + 1}:", f"  call void @PyBuffer_Release(ptr %view{k})", f"  br label %release{k}"]
    lines += ["release0:", "  %is_good = load i1, ptr %good", "  br i1 %is_good, label %finish, label %drop",
              "finish:", *(_number() if number else _arrays(len(shapes))),
              "drop:", *(f"  %left{k} = load ptr, ptr %made{k}\n  call void @Py_DecRef(ptr %left{k})" for k in found),
              "  br label %refuse",
              "refuse:", "  call void @PyErr_Clear()",
              "  %nothing = call ptr (ptr, ...) @Py_BuildValue(ptr @nothing)", "  ret ptr %nothing", "}"]
    return lines


def _item(name: str, k: int) -> str:
    return f"  %{name} = call ptr @PyTuple_GetItem(ptr %self, {_SIZE} {k})"


def _pack(name: str, items: Sequence[str]) -> str:
    listed = ", ".join(f"ptr %{item}" for item in items)
    return f"  %{name} = call ptr ({_SIZE}, ...) @PyTuple_Pack({_SIZE} {len(items)}, {listed})"


def _unless_null(name: str, to: str, otherwise: str) -> list[str]:
    return [f"  %no.{name} = icmp eq ptr %{name}, null", f"  br i1 %no.{name}, label %{otherwise}, label %{to}"]


def _made(of: str, call: str) -> list[str]:
    """Return what `call` makes of `self`'s class and this, which is not needed any more."""
    return [_item("class", 0), _pack("packed", [of]), f"  call void @Py_DecRef(ptr %{of})",
            *_unless_null("packed", "convert", "refuse"),
            "convert:", f"  %result = call ptr {call}", "  call void @Py_DecRef(ptr %packed)",
            *_unless_null("result", "done", "refuse"), "done:", "  ret ptr %result"]


def _number() -> list[str]:
    return ["  %x = load double, ptr %out0", "  %float = call ptr @PyFloat_FromDouble(double %x)",
            *_unless_null("float", "pack", "refuse"),
            "pack:", *_made("float", "@PyObject_CallObject(ptr %class, ptr %packed)")]


def _arrays(count: int) -> list[str]:
    """One as it is; of several, a tuple of `self`'s class: its own `__new__` would take as long as the arrays."""
    arrays = [f"result{k}" for k in range(count)]
    lines = [f"  %{name} = load ptr, ptr %made{k}" for k, name in enumerate(arrays)]
    if count == 1:
        return [*lines, "  ret ptr %result0"]
    return [*lines, _pack("inner", arrays), *(f"  call void @Py_DecRef(ptr %{name})" for name in arrays),
            *_unless_null("inner", "outer", "refuse"),
            "outer:", *_made("inner", "@tuple_new(ptr %class, ptr %packed, ptr null)")]


class _Method(ctypes.Structure):    # PyMethodDef
    _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
                ("doc", ctypes.c_char_p)]


_functions: dict[tuple[str, Any], tuple[Callable[..., Any], int]] = {}    # and their operations


def function_of(key: str, program: Callable[[], Program], sizes: Sequence[int], shapes: Sequence[Shape],
                result: Any) -> tuple[Callable[..., Any], int]:
    """The function of inputs of these sizes; its operations. key: of all that its code depends on; shapes: of the
    arrays of the result, () for a number; result: the tuple that several arrays make.
    """
    if (key, result) in _functions:
        return _functions[key, result]
    if np.__version__.split(".")[0] not in _NUMPY_VERSIONS or not _fields_are_known():
        raise NoProgram(f"the C API of NumPy {np.__version__} is not known")
    _name_functions()
    address, operations = call_of(f"{key} {HEAD}", lambda: printed_for_one(program(), sizes, shapes))
    method = _Method(b"own_code", address, _FASTCALL, None)
    self = (np.float64 if tuple(shapes) == ((),) else result,)
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)(
        ("PyCFunction_NewEx", ctypes.pythonapi))
    function: Callable[..., Any] = make(ctypes.addressof(method), self, None)
    # CPython reads it until the function is gone, which at the end of a process may be after all of this module
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(method))
    return _functions.setdefault((key, result), (function, operations))


def _name_functions() -> None:
    """Of Python and NumPy, for the linker: those of NumPy as its header `import_array` finds them."""
    import llvmlite.binding as llvm

    for name in _API:
        llvm.add_symbol(name, ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value)
    table = ctypes.PYFUNCTYPE(ctypes.POINTER(ctypes.c_void_p), ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi))(_array_api(), None)
    for name, place in _NUMPY_API.items():
        llvm.add_symbol(name, table[place])
    llvm.add_symbol("float64", id(np.dtype(np.float64)))
    llvm.add_symbol("tuple_new", ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_int)(
        ("PyType_GetSlot", ctypes.pythonapi))(tuple, _NEW))


def _fields_are_known() -> bool:
    """Whether arrays have the fields of `ArrayFields`."""
    array = np.zeros((3, 2))
    fields = ArrayFields.from_address(id(array))
    return (fields.data, fields.axes, fields.dtype, fields.flags & 0xFFFF) == (
        array.ctypes.data, 2, id(array.dtype), array.flags.num & 0xFFFF) and fields.shape[:2] == [3, 2]


def _array_api() -> Any:
    core = "numpy.core" if np.__version__.startswith("1.") else "numpy._core"
    return importlib.import_module(f"{core}._multiarray_umath")._ARRAY_API
