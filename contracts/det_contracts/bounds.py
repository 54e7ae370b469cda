"""Size limits for parts of a command or fact, so that a single request cannot grow the state without bound.

A text is limited according to its field name, or else like a title, so new fields are limited too. The
complete message has its own limit (`limits.STATED_BYTES`), which is the only one for whole configurations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from det_contracts.events import trial
from det_contracts.limits import (
    LABELS,
    METRIC_BYTES,
    PAGE_CHARACTERS,
    PROPERTIES_BYTES,
    STATED_BYTES,
    TEXT_CHARACTERS,
    TITLE_CHARACTERS,
)
from det_contracts.problems import invalid

CHARACTERS = {
    "description": TEXT_CHARACTERS,
    "comment": TEXT_CHARACTERS,
    "url": TEXT_CHARACTERS,
    "globs": TEXT_CHARACTERS,
    "notes": PAGE_CHARACTERS,
    "contents": PAGE_CHARACTERS,
    "value": PAGE_CHARACTERS,
    "original_config": STATED_BYTES,
}
"""Limits of texts in characters, by field name."""
CONFIGURATIONS = ("config", "changes")
"""Objects in which texts with the names below are limited. Otherwise only the message limit applies."""
BOUNDED_KEYS = ("name", "description", "notes", "labels", "workspace", "project")
UNBOUNDED_OBJECTS = ("hparams", "data")
"""Objects that are checked elsewhere: hyperparameters of a trial, and data that ranks gather."""
SCRIPT_FIELDS = (
    (trial.OperationCompleted, "metric", METRIC_BYTES),
    (trial.CheckpointStored, "metadata", PROPERTIES_BYTES),
)
"""Fields of facts that are filled by scripts, and their limits in bytes of JSON."""
OPERATOR_COMMANDS = ("configure_pools", "report_workers")
"""Commands not caused by user requests, but by the cluster's own files and engines."""


def check(command: object) -> None:
    """Raise `Refused`, naming the field, if a text in a command exceeds its limit.

    Args:
        command: A command to any owner.
    """
    kind = getattr(getattr(command, "__struct_config__", None), "tag", None)
    if kind not in OPERATOR_COMMANDS:
        _check_fields(command)


def limit_problem(fact: object) -> str:
    """Return what is too large in a fact from a script, with the field name and advice; empty if nothing is.

    Args:
        fact: A fact stated by a trial, of any kind.
    """
    problems = (
        too_large(field, getattr(fact, field), most)
        for kind, field, most in SCRIPT_FIELDS
        if type(fact) is kind
    )
    return next(filter(None, problems), "")


def too_large(field: str, value: Any, most: int) -> str:
    """Return why a value is too large; empty if it is not.

    Args:
        field: Name of the field for the message.
        value: Any JSON value.
        most: Maximum size in bytes of JSON.

    >>> too_large("metric", 0.5, 10)
    ''
    >>> too_large("metric", "x" * 20, 10)
    'metric has 22 bytes of JSON: at most 10 are taken; store the rest in a file, with a checkpoint'
    """
    size = len(msgspec.json.encode(value))
    if size <= most:
        return ""
    has = f"{field} has {size:,} bytes of JSON: at most {most:,} are taken"
    return f"{has}; store the rest in a file, with a checkpoint"


def _check_fields(record: object) -> None:
    for field in getattr(record, "__struct_fields__", ()):
        _check(field, getattr(record, field))


def _check(field: str, value: Any) -> None:
    if isinstance(value, str):
        most = CHARACTERS.get(field, TITLE_CHARACTERS)
        if len(value) > most:
            raise _limit_error(field, f"{len(value):,} characters", f"{most:,}", value)
    elif isinstance(value, msgspec.Struct):
        _check_fields(value)
    elif isinstance(value, tuple | list):
        _check_all(field, value)
    elif isinstance(value, Mapping):
        _check_object(field, value)


def _check_all(field: str, values: tuple[Any, ...] | list[Any]) -> None:
    if field == "labels" and len(values) > LABELS:
        raise _limit_error(field, f"{len(values):,} entries", f"{LABELS:,}")
    for value in values:
        _check(field, value)


def _check_object(field: str, value: Mapping[Any, Any]) -> None:
    if field in CONFIGURATIONS:
        # The rest of a configuration is the user's own data, for which only the whole message counts.
        for name in BOUNDED_KEYS:
            _check(name, value.get(name))
    elif field not in UNBOUNDED_OBJECTS:
        size = len(msgspec.json.encode(value))
        if size > PROPERTIES_BYTES:
            raise _limit_error(field, f"{size:,} bytes of JSON", f"{PROPERTIES_BYTES:,}")


def _limit_error(field: str, has: str, most: str, value: str = "") -> Exception:
    # Otherwise nobody would find the field in a configuration of thousands of lines.
    begins = f" (it begins with {value[:40]!r})" if value else ""
    return invalid(f"{field} has {has}{begins}: at most {most} are taken; choose a shorter one")
