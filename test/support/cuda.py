"""CUDA without a device: kernels compiled as C++ and run thread by thread, a stand-in for CuPy around them, and NVRTC.

The stand-in is there because no test can count on a GPU: it shows what `rbd.cuda_batch` does with arrays, not CuPy.
"""
from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib.metadata
import re
import shutil
import subprocess
import types
from pathlib import Path

import numpy as np

COMPILER = shutil.which("g++") or shutil.which("clang++")
UNWRITTEN = -7.25e11    # what device memory holds before a kernel writes there
HEADER = """
#include <math.h>
#define __global__
#define __launch_bounds__(threads)
static struct { unsigned x; } blockIdx, blockDim, threadIdx;
extern "C" void place(unsigned block, unsigned threads, unsigned thread)
{
    blockIdx.x = block;
    blockDim.x = threads;
    threadIdx.x = thread;
}
"""


class Kernels:
    """The kernels of CUDA source, compiled for this processor."""

    def __init__(self, source, folder, *flags):
        name = hashlib.sha256(f"{source}{flags}".encode()).hexdigest()[:16]
        header, text, library = (Path(folder) / f"{name}.{end}" for end in ("h", "cu", "so"))
        if not library.exists():
            header.write_text(HEADER)
            text.write_text(source)
            subprocess.run([COMPILER, "-std=c++14", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-O0",
                            *flags, "-shared", "-fPIC", "-include", header, "-x", "c++", text, "-o", library],
                           check=True)
        self.library = ctypes.CDLL(str(library))

    def __call__(self, name, blocks, threads, *arguments):
        """arguments: arrays of any strides, by their first element, and integers."""
        kernel = getattr(self.library, name)
        given = [ctypes.c_void_p(x.__array_interface__["data"][0]) if isinstance(x, np.ndarray)
                 else ctypes.c_longlong(int(x)) for x in arguments]
        for block in range(blocks):
            for thread in range(threads):
                self.library.place(block, threads, thread)
                kernel(*given)


# a stand-in for CuPy

class DeviceArray(np.ndarray):
    """An array of a stand-in library, in the memory of a device."""

    device, kind, exports, library = 0, 2, None, None    # a number, DLPack's kind of memory, streams so far, a module

    def __array_finalize__(self, like):
        for name in ("device", "kind", "exports", "library"):
            setattr(self, name, getattr(like, name, getattr(type(self), name)))

    def __dlpack_device__(self):
        return self.kind, self.device

    def __dlpack__(self, *, stream=None, **_):
        if self.exports is None:
            raise BufferError("tensor requires gradients")
        self.exports.append(stream)
        return self

    def __array_namespace__(self, **_):
        return self.library


class CupyArray(DeviceArray):
    """An array of the stand-in for CuPy."""


def on_device(values, library="torch", device=0, kind=2, kind_of=DeviceArray):
    """An array of another library with the strides of `values`."""
    array = np.asarray(values).view(kind_of)
    module = types.SimpleNamespace(name=library)
    module.from_dlpack = lambda other: _imported(other, kind_of, module)
    array.device, array.kind, array.exports, array.library = device, kind, [], module
    return array


def _imported(other, kind_of, module):
    array = other.__dlpack__(stream=f"stream of {module.name}").view(kind_of)
    array.library = module
    return array


class Cupy(types.ModuleType):
    """What `rbd.cuda_batch` uses of CuPy. log: kernels (name, blocks, threads, device)."""

    def __init__(self, folder, devices=2):
        super().__init__("cupy")
        self.log, self.current, self.compiled, self.pending = [], 0, 0, []
        outer = self

        class RawKernel:
            def __init__(self, code, name, options=()):
                self.code, self.name, self.options = code, name, options

            def compile(self):
                outer.compiled += 1
                self.kernels = Kernels(self.code, folder)

            def __call__(self, grid, block, arguments):
                outer.log.append((self.name, grid, block, outer.current))
                assert all(isinstance(x, (CupyArray, np.int64)) for x in arguments)
                self.kernels(self.name, *grid, *block, *arguments)

        @contextlib.contextmanager
        def on(device):
            before, outer.current = outer.current, device
            yield
            outer.current = before

        class Event:
            done = False

        def record():
            outer.pending.append(Event())
            return outer.pending[-1]

        self.RawKernel = RawKernel
        self.cuda = types.SimpleNamespace(
            Device=on, get_current_stream=lambda: types.SimpleNamespace(record=record),
            runtime=types.SimpleNamespace(getDeviceCount=lambda: devices))

    def from_dlpack(self, other):
        return _imported(other, CupyArray, types.SimpleNamespace(name="cupy", from_dlpack=self.from_dlpack))

    def empty(self, shape, dtype):
        return on_device(np.full(shape, UNWRITTEN, dtype), "cupy", self.current, kind_of=CupyArray)


# NVRTC

def nvrtc():
    """The library of the wheel nvidia-cuda-nvrtc-cu12, or of the system; None without."""
    names = ["libnvrtc.so.12", "libnvrtc.so"]
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        names[:0] = [str(file.locate()) for file in importlib.metadata.files("nvidia-cuda-nvrtc-cu12") or []
                     if re.fullmatch(r"libnvrtc\.so\.\d+", file.name)]
    for name in names:
        with contextlib.suppress(OSError):
            return ctypes.CDLL(name)
    return None


def compiled(library, source, *options):
    """PTX (for --gpu-architecture=compute_…) or machine code (sm_…) of CUDA source, and what the compiler says."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"robot.cu", 0, None, None) == 0
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    failed = library.nvrtcCompileProgram(program, len(options), given)

    def text(what):
        assert getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)) == 0
        buffer = ctypes.create_string_buffer(size.value)
        assert getattr(library, f"nvrtcGet{what}")(program, buffer) == 0
        return buffer.raw

    log = text("ProgramLog").rstrip(b"\0").decode()
    assert not failed, log
    code = text("CUBIN" if any("=sm_" in option for option in options) else "PTX")
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return code, log
