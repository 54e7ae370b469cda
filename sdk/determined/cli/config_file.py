"""Reads configuration files named on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from determined import yamlfile
from determined.cli.failure import CannotOpen, Failure

Config = dict[str, Any]


def read_text(path: Path) -> str:
    """Return the text of a file. Raises `CannotOpen`, or `Failure` if it is not UTF-8."""
    try:
        return yamlfile.read(path)
    except yamlfile.YamlProblem as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise CannotOpen(f"cannot read {path}: {error.strerror}") from error


def read_config(path: Path, what: str = "configuration") -> tuple[str, Config]:
    """Return the text of a YAML file and the map it contains; `what` names it in errors.

    Raises `CannotOpen`, or `Failure` with line and column if it is not a map of fields.
    """
    text = read_text(path)
    try:
        config = yamlfile.parse(text, str(path))
    except yamlfile.YamlProblem as error:
        raise Failure(str(error)) from error
    if not isinstance(config, dict):
        raise Failure(f"{path}, line 1, column 1: a {what} is a map of fields, not {_kind(config)}")
    return text, config


def _kind(value: Any) -> str:
    return {type(None): "empty", list: "a list"}.get(type(value), f"'{value}'")
