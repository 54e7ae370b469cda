"""Which service decides a command, as the declaration of the command says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

Command = TypeVar("Command", bound=type[msgspec.Struct])

OWNER_OF: dict[type, str] = {}
"""The service that decides each command. Complete once `det_contracts.commands` is imported."""
_by_subject: dict[tuple[str, object], str] = {}


def command(owner: str) -> Callable[[Command], Command]:
    """Declare a record as a command that this service decides. Its tag names it in the subject."""

    def register(record: Command) -> Command:
        tag, name = record.__struct_config__.tag, record.__name__
        if not tag:
            raise ValueError(f"{name} has no tag, which names a command in its subject: give it one")
        if _by_subject.setdefault((owner, tag), name) != name:
            raise ValueError(f"{name} has the tag '{tag}' of {_by_subject[owner, tag]}: give it another one")
        OWNER_OF[record] = owner
        return record

    return register
