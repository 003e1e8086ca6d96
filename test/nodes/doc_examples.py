"""`ros2 service call` commands in a Markdown file, each with the answer that the file shows below it."""
from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import yaml

COMMAND = re.compile(r'```bash\nros2 service call (\S+) (\w+)/srv/(\w+) "(.*?)"\n```\n'
                     r'(?:```yaml\n(.*?)\n```)?', re.DOTALL)


def examples(path: Path) -> list[tuple[str, Any, Any, dict[str, Any]]]:
    """(service, its type, request, shown fields) of every command in the file."""
    found = []
    for service, package, kind, fields, shown in COMMAND.findall(path.read_text()):
        made = getattr(importlib.import_module(f"{package}.srv"), kind)
        found.append((service, made, filled(made.Request(), yaml.safe_load(fields)), yaml.safe_load(shown or "{}")))
    return found


def filled(message: Any, fields: dict[str, Any]) -> Any:
    """The message with these fields, as ros2 service call reads them."""
    for name, value in fields.items():
        old = getattr(message, name)
        kind = message.get_fields_and_field_types()[name]
        if isinstance(value, dict):
            filled(old, value)
        elif isinstance(value, list) and "/" in kind:
            package, item = kind.removeprefix("sequence<").removesuffix(">").split("/")
            make = getattr(importlib.import_module(f"{package}.msg"), item)
            setattr(message, name, [filled(make(), entry) for entry in value])
        elif isinstance(value, list):
            setattr(message, name, [float(x) for x in value] if "double" in kind else value)
        else:
            setattr(message, name, float(value) if kind == "double" else value)
    return message


def plain(value: Any) -> Any:
    """A message as dictionaries, lists and numbers."""
    if hasattr(value, "get_fields_and_field_types"):
        return {name: plain(getattr(value, name)) for name in value.get_fields_and_field_types()}
    return [plain(item) for item in value] if hasattr(value, "__len__") and not isinstance(value, str) else value
