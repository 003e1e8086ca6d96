"""Straight-line code as CUDA kernels: a thread per state, arrays of any strides; without headers, as NVRTC takes it."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from .program import Program

BLOCK = 128    # threads per block: with 255 registers each, two blocks per multiprocessor
# at -O3, ptxas leaves 32 registers to code of 7,000 operations, and spills five times as much
OPTIONS = ("--ptxas-options=-O1",)
Sizes = Mapping[str, int]


def cuda_kernel(name: str, number: str, suffix: str, inputs: Sizes, outputs: Sizes, program: Program,
                value: Mapping[int, str], statements: Mapping[int, str], refusals: Sequence[str]) -> str:
    """A kernel `name(states, q, q_state, q_entry, …)`: the number of states, and per array its address and strides.

    value, statements: printed program, whose inputs have the names q0, q1, …; refusals: conditions of states whose
    results are NaN. Each result is stored as soon as it is computed, so that it holds no register.
    """
    arguments = ["long long states", *(f"const {number} *__restrict__ {array}, long long {array}_state, long long "
                                       f"{array}_entry" for array in inputs),
                 *(f"{number} *__restrict__ {array}, long long {array}_state, long long {array}_entry"
                   for array in outputs)]
    used = {i for node in program.nodes for i in node.operands} | set(program.outputs) | {
        i for guard in program.guards for i in (guard.left, guard.right)}
    places = [(array, k) for array, size in inputs.items() for k in range(size)]
    loads = [f"const {number} {array}{k} = {array}[{k} * {array}_entry];"
             for (array, k), scalar in zip(places, program.inputs, strict=True) if scalar.index in used]
    results = [f"{array}[{k} * {array}_entry]" for array, size in outputs.items() for k in range(size)]
    stores: dict[int, list[str]] = {}
    for place, i in zip(results, program.outputs, strict=True):
        stores.setdefault(i, []).append(f"{place} = {value[i]};")
    lines = [line for i in range(len(program.nodes))
             for line in ([statements[i]] if i in statements else []) + stores.get(i, [])]
    if refusals:
        lines += [f"if ({' || '.join(refusals)}) {{", *(
            f"    for (int k = 0; k < {size}; ++k) {array}[k * {array}_entry] = nan{suffix}(\"\");"
            for array, size in outputs.items()), "}"]
    body = ["const long long state = (long long)blockIdx.x * blockDim.x + threadIdx.x;", "if (state >= states) return;",
            *(f"{array} += state * {array}_state;" for array in (*inputs, *outputs)), *loads, *lines]
    signature = ",\n    ".join(arguments)
    return "\n".join([f'extern "C" __global__ void __launch_bounds__({BLOCK}) {name}(', f"    {signature})", "{",
                      *(f"    {line}" for line in body), "}"])


Case = tuple[str, Mapping[str, str], Sizes, Mapping[str, str], Sizes]


def cuda_test(name: str, number: str, tolerance: float, cases: Sequence[Case]) -> str:
    """A program that runs the kernels and compares with reference results.

    cases: per kernel its name, numbers and sizes of its inputs, and of its results.
    """
    lines = [f'#include "{name}.cu"', "", "#include <cmath>", "#include <cstdio>", "#include <cstdlib>", "",
             f"static const int STATES = 1000, BLOCK = {BLOCK}, BLOCKS = (STATES + BLOCK - 1) / BLOCK;",
             "static int failed = 0;", "", "/* an array (entries, STATES): neighbouring threads read neighbouring "
             "numbers */", f"static {number} *device_array(int entries, const {number} *values = nullptr)", "{",
             f"    {number} *array = nullptr;",
             "    if (cudaMallocManaged(&array, sizeof(*array) * entries * STATES) != cudaSuccess) {",
             '        puts("no CUDA device with managed memory");', "        exit(1);", "    }",
             "    for (int i = 0; i < entries * STATES; ++i) array[i] = values ? values[i / STATES] : 0;",
             "    return array;", "}", "",
             f"static void check(const char *what, int entries, {number} *found, const double *expected)", "{",
             "    double size = 1e-300, error = 0.0;",
             "    for (int k = 0; k < entries; ++k) size = fmax(size, fabs(expected[k]));",
             "    for (int i = 0; i < entries * STATES; ++i) {",
             "        const double difference = fabs((double)found[i] - expected[i / STATES]);",
             f"        if (!(difference <= {tolerance} * size)) failed = 1;",
             "        error = fmax(error, difference);", "    }",
             '    printf("%s: relative error %.1e\\n", what, error / size);', "    cudaFree(found);", "}", "",
             "int main()", "{"]
    for kernel, numbers, inputs, expected, outputs in cases:
        lines.append("    {")
        for array, text in numbers.items():
            lines += [f"        const {number} {array}_values[] = {{{text}}};",
                      f"        {number} *{array} = device_array({inputs[array]}, {array}_values);"]
        for array, text in expected.items():
            lines += [f"        const double {array}_expected[] = {{{text}}};",
                      f"        {number} *{array} = device_array({outputs[array]});"]
        arguments = ", ".join(["STATES", *(f"{array}, 1, STATES" for array in (*inputs, *outputs))])
        lines += [f"        {kernel}<<<BLOCKS, BLOCK>>>({arguments});",
                  "        if (cudaDeviceSynchronize() != cudaSuccess) failed = 1;",
                  *(f'        check("{kernel}: {array}", {size}, {array}, {array}_expected);'
                    for array, size in outputs.items()), *(f"        cudaFree({array});" for array in inputs), "    }"]
    return "\n".join([*lines, "    return failed;", "}", ""])


def cuda_cmake(name: str) -> str:
    """CMakeLists.txt of the test."""
    return (f"cmake_minimum_required(VERSION 3.18)\nproject({name} CUDA)\n"
            "if(NOT CMAKE_BUILD_TYPE)\n  set(CMAKE_BUILD_TYPE Release)\nendif()\n"
            "if(NOT CMAKE_CUDA_ARCHITECTURES)\n  set(CMAKE_CUDA_ARCHITECTURES 75 80 90)\nendif()\n"
            f"enable_testing()\nadd_executable(test_{name} test_{name}.cu)\n"
            f"target_compile_options(test_{name} PRIVATE {' '.join(OPTIONS)})\n"
            f"add_test(NAME {name} COMMAND test_{name})\n")
