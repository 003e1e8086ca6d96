"""`.. commands:: rbd`: what `--help` of each command says."""
from __future__ import annotations

import argparse
import importlib
import os
from typing import Any
from unittest import mock

from .api import Lines


class Commands(Lines):
    optional_arguments = 0

    def text(self) -> list[str]:
        from rbd_ros.cli.main import COMMANDS

        lines = []
        for name, (module, text) in COMMANDS.items():
            parser = argparse.ArgumentParser(prog=f"rbd {name}", description=text[0].upper() + text[1:] + ".")
            importlib.import_module(f"rbd_ros.cli.{module}").add_arguments(parser)
            with mock.patch.dict(os.environ, COLUMNS="100", NO_COLOR="1"):
                told = parser.format_help().rstrip().splitlines()
            title = f"rbd {name}"
            lines += [title, "-" * len(title), "", ".. code-block:: text", "", *("    " + line for line in told), ""]
        return lines


def setup(app: Any) -> None:
    app.add_directive("commands", Commands)
