"""What is wrong with a configuration, gathered so that one answer names everything."""

from __future__ import annotations

import msgspec

SANITY = "version 0 experiment config is invalid"
COMPLETENESS = "invalid experiment configuration"


class ConfigErrors(Exception):
    """One stage of reading a configuration failed; every failure of that stage is in `errors`.

    `stage` is the text that goes in front; each error starts with its path, such as
    `<config>.hyperparameters.lr.minval: ...` (experiment configuration spec, section 1).
    """

    def __init__(self, stage: str, errors: tuple[str, ...]) -> None:
        between = "\n  " if len(errors) > 1 else " "
        super().__init__(stage + ":" + between + between.join(errors))
        self.stage = stage
        self.errors = errors


class Faults:
    """The failures of one stage so far; in the `final` stage the eventually required fields must be set."""

    def __init__(self, *, final: bool = False) -> None:
        self.final = final
        self.found: list[str] = []

    def add(self, at: str, message: str) -> None:
        """Note a failure of the value at a path."""
        self.found.append(f"{at}: {message}")

    def clean(self, at: str) -> bool:
        """Whether nothing was found at a path or below it."""
        return not any(fault.startswith((f"{at}:", f"{at}.", f"{at}[")) for fault in self.found)

    def raise_any(self, stage: str) -> None:
        """Raise `ConfigErrors` when something was found."""
        if self.found:
            raise ConfigErrors(stage, tuple(self.found))


def described(value: object) -> str:
    """A value in a message: scalars as JSON, cut at 40 characters; containers by their kind."""
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list):
        return "a list"
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 40 else text[:37] + "..."
