"""Make the CMake files of the ROS wheels name this environment instead of the machine they were built on.

Their exports (share/*/cmake/*Export*.cmake) contain /opt/python/cpXY-cpXY/include/pythonX.Y and
/opt/python/cpXY-cpXY/lib/pythonX.Y/site-packages/numpy/…/include, which CMake refuses as missing.
Run with the Python of the environment. Does nothing the second time.
"""

import re
import sys
import sysconfig
from pathlib import Path

import numpy

BUILD_PYTHON = r"/opt/python/cp[^/;\"]+"
REPLACEMENTS = [  # the specific ones first
    (rf"{BUILD_PYTHON}/lib/python[^/;\"]+/site-packages/numpy/(?:_?core)/include", numpy.get_include()),
    (rf"{BUILD_PYTHON}/lib/python[^/;\"]+/site-packages", sysconfig.get_path("purelib")),
    (rf"{BUILD_PYTHON}/include/python[^/;\"]+", sysconfig.get_path("include")),
    (rf"{BUILD_PYTHON}/lib", str(sysconfig.get_config_var("LIBDIR"))),
]


def repair(text: str) -> str:
    for pattern, path in REPLACEMENTS:
        text = re.sub(pattern, lambda _, path=path: path, text)
    return text


def main() -> None:
    repaired = 0
    for file in Path(sys.prefix, "share").glob("*/cmake/*.cmake"):
        text = file.read_text()
        if "/opt/python/" in text:
            file.write_text(repair(text))
            repaired += 1
    print(f"repaired {repaired} CMake files")


if __name__ == "__main__":
    main()
