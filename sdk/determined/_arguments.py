"""Checks of arguments. Their errors name the argument, what belongs there, and what was given instead."""

from __future__ import annotations

import enum
import operator
import os
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

Kind = TypeVar("Kind", bound=enum.Enum)
_SHOWN_CHARACTERS = 60


def wrong(name: str, expected: str, value: Any) -> str:
    """Return the text of an error.

    >>> wrong("rank", "an integer", "x")
    "rank must be an integer, not 'x' (str)"
    """
    shown = repr(value)
    if len(shown) > _SHOWN_CHARACTERS:
        shown = f"{shown[:_SHOWN_CHARACTERS]}..."
    return f"{name} must be {expected}, not {shown}{'' if value is None else f' ({type(value).__name__})'}"


def having(name: str, value: Any, attributes: Collection[str], expected: str) -> None:
    """Raise TypeError if an object lacks an attribute that it is used by; its class does not matter."""
    if isinstance(value, type) or not all(hasattr(value, attribute) for attribute in attributes):
        raise TypeError(wrong(name, expected, value))


def integer(name: str, value: Any, at_least: int | None = None, at_most: int | None = None) -> int:
    """Return an integer. Raises TypeError for anything else, and ValueError if it is out of range."""
    try:
        if isinstance(value, bool):
            raise TypeError
        converted = operator.index(value)
    except TypeError:
        raise TypeError(wrong(name, "an integer", value)) from None
    if at_least is not None and converted < at_least:
        raise ValueError(f"{name} must be at least {at_least}, not {converted}")
    if at_most is not None and converted > at_most:
        raise ValueError(f"{name} must be at most {at_most}, not {converted}")
    return converted


def number(name: str, value: Any) -> float:
    """Return a number as a float. Raises TypeError for anything else, text included."""
    try:
        if isinstance(value, str | bytes | bytearray):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(wrong(name, "a number", value)) from None


def text(name: str, value: Any, expected: str = "text (str)") -> None:
    """Raise TypeError for anything but text."""
    if not isinstance(value, str):
        raise TypeError(wrong(name, expected, value))


def mapping(name: str, value: Any, expected: str) -> None:
    """Raise TypeError for anything but a dict or another mapping."""
    if not isinstance(value, Mapping):
        raise TypeError(wrong(name, expected, value))


def path(name: str, value: Any) -> None:
    """Raise TypeError for anything but a path, and ValueError for an empty one."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(wrong(name, "a path (str or Path)", value))
    if not os.fspath(value):
        raise ValueError(f"{name} must be a path, not empty; '.' is the working directory")


def function(name: str, value: Any, takes: str) -> None:
    """Raise TypeError for anything but a function or None."""
    if value is not None and not callable(value):
        raise TypeError(wrong(name, f"a function of {takes}, or None", value))


def member(name: str, value: Any, kind: type[Kind]) -> Kind:
    """Return a member of an enumeration, given it or its value. Raises ValueError for anything else."""
    try:
        return kind(value)
    except ValueError:
        choices = ", ".join(f"{kind.__name__}.{choice.name}" for choice in kind)
        raise ValueError(wrong(name, f"one of {choices}", value)) from None
