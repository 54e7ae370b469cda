"""How large parts of a command or fact may be: each has a limit, so that no state grows by one request.

A text has the limit of its field's name, or that of titles. So a field that is new has one, too. The message
as a whole has another (`limits.STATED_BYTES`), which is the only one for whole configurations.
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
"""Of texts, by the name of their field."""
CONFIGURATIONS = ("config", "changes")
"""Objects whose own texts of these names have limits, too; the rest of them has that of the message."""
DESCRIBED = ("name", "description", "notes", "labels", "workspace", "project")
AS_LARGE_AS_A_MESSAGE = ("hparams", "data")
"""Objects of which others see to it: hyperparameters of a trial, and what ranks gather."""
OF_SCRIPTS = (
    (trial.OperationCompleted, "metric", METRIC_BYTES),
    (trial.CheckpointStored, "metadata", PROPERTIES_BYTES),
)
"""Fields of facts that a script fills as it likes, and how many bytes of JSON each may have."""
OF_OPERATORS = ("configure_pools", "report_workers")
"""Commands that no request leads to: what the cluster's own files and engines say."""


def check(command: object) -> None:
    """Raise `Refused` where a text of a command is longer than its limit, with the field's name.

    Args:
        command: A command of any owner.
    """
    kind = getattr(getattr(command, "__struct_config__", None), "tag", None)
    if kind not in OF_OPERATORS:
        _check_fields(command)


def beyond_limits(fact: object) -> str:
    """What is too large in a fact of a script, with the field's name and what to do; empty for nothing.

    Args:
        fact: What a trial states, of any kind.
    """
    found = (
        too_large(field, getattr(fact, field), most) for kind, field, most in OF_SCRIPTS if type(fact) is kind
    )
    return next(filter(None, found), "")


def too_large(field: str, value: Any, most: int) -> str:
    """Why a value cannot be stated; empty where it can.

    Args:
        field: What it is called where it is given.
        value: Anything that JSON has.
        most: Bytes of JSON that are taken.

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
            raise _beyond(field, f"{len(value):,} characters", f"{most:,}", value)
    elif isinstance(value, msgspec.Struct):
        _check_fields(value)
    elif isinstance(value, tuple | list):
        _check_all(field, value)
    elif isinstance(value, Mapping):
        _check_object(field, value)


def _check_all(field: str, values: tuple[Any, ...] | list[Any]) -> None:
    if field == "labels" and len(values) > LABELS:
        raise _beyond(field, f"{len(values):,} entries", f"{LABELS:,}")
    for one in values:
        _check(field, one)


def _check_object(field: str, value: Mapping[Any, Any]) -> None:
    if field in CONFIGURATIONS:
        for name in DESCRIBED:
            _check(name, value.get(name))
    elif field not in AS_LARGE_AS_A_MESSAGE:
        size = len(msgspec.json.encode(value))
        if size > PROPERTIES_BYTES:
            raise _beyond(field, f"{size:,} bytes of JSON", f"{PROPERTIES_BYTES:,}")


def _beyond(field: str, has: str, most: str, value: str = "") -> Exception:
    begins = f" (it begins with {value[:40]!r})" if value else ""
    return invalid(f"{field} has {has}{begins}: at most {most} are taken; choose a shorter one")
