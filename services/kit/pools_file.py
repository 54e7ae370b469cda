"""The cluster's configuration file, for all programs that use part of it: pools, engines, task defaults."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from services.kit.settings import BadSettings

_NAME = re.compile(r"[A-Za-z0-9_-]+")


def read(path: Path) -> dict[str, Any]:
    """Return the file's contents, empty for an empty file. Raises `BadSettings` if it is not a mapping."""
    try:
        content = yaml.safe_load(path.read_text()) or {}
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise BadSettings(f"cannot read the resource pools in {path}: {error}") from None
    if not isinstance(content, dict):
        raise_problems(path, ["expected a mapping with `resource_pools`"])
    return dict(content)


def raise_problems(path: Path, problems: Iterable[str]) -> None:
    """Raise `BadSettings` with every problem, if there is any."""
    lines = "\n".join(f"  {problem}" for problem in problems)
    if lines:
        raise BadSettings(f"{path} is invalid:\n{lines}")


def pool_name_problem(name: str) -> str:
    """Explain why a pool name is invalid; empty if it is valid. Names become part of subjects and paths."""
    if not name:
        return "resource pool name cannot be empty"
    return "" if _NAME.fullmatch(name) else f"'{name}' may have letters, digits, '_' and '-' only"
