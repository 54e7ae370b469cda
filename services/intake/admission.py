"""What may enter the log of all that strangers say: checks of form, each on one message alone.

Whose fact it is, is said by the subject, which the broker has checked. What a fact means, such as whether its
run still counts, is judged by the folds that listen to it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts import bounds, codec, subjects
from det_contracts.envelope import Envelope, Unknown
from det_contracts.events import trial, worker
from det_contracts.limits import STATED_BYTES
from det_contracts.nesting import is_too_deep
from services.kit.log import Draft, Stored

TRACE_LENGTH = 64
"""Of the header that names the span in which something was stated."""
BY_REST = (trial.Heartbeat,)
"""What only the gateway says for a script; of this version it says no such thing any more."""


class NotAdmitted(Exception):
    """A message that never gets into the log; the text says why."""


class Sender(msgspec.Struct, frozen=True):
    """Who may have published on a subject."""

    sort: str
    """`trial`, `worker`, or `rest`: the gateway, for a trial."""
    id: str

    @property
    def about(self) -> str:
        """First word of the names of facts that it may state."""
        return "trial" if self.sort == "rest" else self.sort


class Admitted(msgspec.Struct, frozen=True):
    """A fact as it goes into the log, and what the log must look like for it."""

    draft: Draft
    replaces: int | None = None
    """Position of the newest message on its subject, where that was claimed."""


def admit(message: Stored, at: float) -> Admitted:
    """The fact in a message of WITNESS, with the time and the name that the log knows it by.

    Raises `NotAdmitted` for a message that is no fact of its sender.
    """
    sender = _sender(message.subject)
    if len(message.body) > STATED_BYTES or is_too_deep(message.body):
        raise NotAdmitted("it is too large, or nests too deep")
    try:
        stated = codec.opened(message.body)
        event = codec.check(stated)
    except codec.BadRecord as error:
        raise NotAdmitted(str(error)) from None
    _check_kind(sender, stated, event)
    body = codec.sealed(_sealed(stated, sender, message.position, at))
    if len(body) > STATED_BYTES:
        raise NotAdmitted(f"it would be {len(body):,} bytes in the log, which takes {STATED_BYTES:,}")
    subject = subjects.control(stated.name, sender.id)
    replaces = event.replaces if isinstance(event, worker.WorkerRegistered) else None
    return Admitted(Draft(subject, body, _name(message.position), _trace(message)), replaces)


def _trace(message: Stored) -> str:
    good = len(message.trace) <= TRACE_LENGTH and message.trace.isascii() and message.trace.isprintable()
    return message.trace if good else ""


def _sender(subject: str) -> Sender:
    match subject.split("."):
        case ["witness", "trial" | "worker" | "rest" as sort, id]:
            return Sender(sort, id)
    raise NotAdmitted("nobody may speak there")


def _check_kind(sender: Sender, stated: Envelope, event: Any) -> None:
    if not stated.name.startswith(f"{sender.about}.") or (sender.sort == "trial" and type(event) in BY_REST):
        raise NotAdmitted(f"a {sender.sort} may not state {stated.name}")
    if type(event) is Unknown:
        # In the log it would be passed over by everybody, for ever.
        raise NotAdmitted(f"{stated.name}, version {stated.version}, is of a newer release than the services")
    if codec.subject_of(event) != subjects.control(stated.name, sender.id):
        raise NotAdmitted(f"this {stated.name} is not about {sender.about} {sender.id}, who states it")
    # What else a trial states has its limits in the records.
    limits = worker.beyond_limits if sender.sort == "worker" else bounds.beyond_limits
    if beyond := limits(event):
        raise NotAdmitted(f"{stated.name}: {beyond}")


def _sealed(stated: Envelope, sender: Sender, position: int, at: float) -> Envelope:
    # Ids and causes are what stories are told by: nobody may take somebody else's.
    actor = stated.actor if sender.sort == "rest" else f"{sender.sort}:{sender.id}"
    return msgspec.structs.replace(
        stated, id=_name(position), actor=actor, at=at, cause="", witness=position, stated_at=stated.at
    )


def _name(position: int) -> str:
    return f"witness-{position}"
