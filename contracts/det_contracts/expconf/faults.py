"""Collects the errors of a configuration, so that one response lists all of them."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

import msgspec

SANITY = "version 0 experiment config is invalid"
COMPLETENESS = "invalid experiment configuration"


class ConfigErrors(Exception):
    """One stage of reading a configuration failed. `errors` lists all failures of that stage.

    `stage` is the text in front of them. Each error starts with its path, such as
    `<config>.hyperparameters.lr.minval: ...` (experiment configuration spec, section 1).
    """

    def __init__(self, stage: str, errors: tuple[str, ...]) -> None:
        between = "\n  " if len(errors) > 1 else " "
        super().__init__(stage + ":" + between + between.join(errors))
        self.stage = stage
        self.errors = errors


class Faults:
    """The failures of one stage so far. In the `final` stage, required fields must be set."""

    def __init__(self, *, final: bool = False) -> None:
        self.final = final
        self.errors: list[str] = []

    def add(self, at: str, message: str) -> None:
        """Add a failure of the value at a path."""
        self.errors.append(f"{at}: {message}")

    def is_clean(self, at: str) -> bool:
        """Whether there is no failure at a path or below it."""
        # With the character after the path: `max_length` is no part of `max`.
        return not any(fault.startswith((f"{at}:", f"{at}.", f"{at}[")) for fault in self.errors)

    def raise_any(self, stage: str) -> None:
        """Raise `ConfigErrors` if there are failures."""
        if self.errors:
            raise ConfigErrors(stage, tuple(self.errors))


def did_you_mean(word: object, names: Iterable[str]) -> str:
    """Suggest the nearest of these names for a misspelled one, or nothing: `, did you mean "single"?`."""
    near = get_close_matches(word, list(names), n=1) if isinstance(word, str) else []
    return f', did you mean "{near[0]}"?' if near else ""


def format_value(value: object) -> str:
    """Format a value for a message: scalars as JSON, cut to 40 characters; containers by their kind."""
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list):
        return "a list"
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 40 else text[:37] + "..."
