"""The cluster's configuration file, for all who take a part of it: pools, engines, defaults of tasks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from services.kit.settings import BadSettings

_NAME = re.compile(r"[A-Za-z0-9_-]+")


def read(path: Path) -> dict[str, Any]:
    """What the file says, empty for an empty file. Raises `BadSettings` for one that holds no mapping."""
    try:
        content = yaml.safe_load(path.read_text()) or {}
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise BadSettings(f"cannot read the resource pools in {path}: {error}") from None
    if not isinstance(content, dict):
        refuse(path, ["expected a mapping with `resource_pools`"])
    return dict(content)


def refuse(path: Path, problems: Iterable[str]) -> None:
    """Raise `BadSettings` with every problem; return where there is none."""
    lines = "\n".join(f"  {problem}" for problem in problems)
    if lines:
        raise BadSettings(f"{path} does not make sense:\n{lines}")


def problem_of_name(name: str) -> str:
    """Why no pool may be called so; empty where one may. It becomes part of subjects and of paths."""
    if not name:
        return "resource pool name cannot be empty"
    return "" if _NAME.fullmatch(name) else f"'{name}' may have letters, digits, '_' and '-' only"
