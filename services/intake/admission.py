"""Decides which external messages may enter the log: checks of form, each on a single message.

The subject says whose fact a message is, and the broker has verified it. What a fact means, such as whether
its run still counts, is judged by the folds that consume it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts import bounds, checkpoint_ids, codec, subjects
from det_contracts.envelope import Envelope, Unknown
from det_contracts.events import trial, worker
from det_contracts.limits import STATED_BYTES
from det_contracts.nesting import is_too_deep
from services.kit.log import Draft, Stored

TRACE_LENGTH = 64
"""Maximum length of the header that names the trace span of a message."""
GATEWAY_ONLY = (trial.Heartbeat,)
"""Facts that only the gateway states for scripts. The gateway of this version no longer does."""


class NotAdmitted(Exception):
    """A message that can never enter the log; the text says why."""


class Sender(msgspec.Struct, frozen=True):
    """The sender that may publish on a subject."""

    sort: str
    """`trial`, `worker`, or `rest`: the gateway, on behalf of a trial."""
    id: str

    @property
    def fact_prefix(self) -> str:
        """First word of the names of facts that it may state."""
        return "trial" if self.sort == "rest" else self.sort


class Admitted(msgspec.Struct, frozen=True):
    """A fact as it enters the log, and the condition on the log for that."""

    draft: Draft
    replaces: int | None = None
    """Position of the newest message on its subject, if the sender claimed one."""


def admit(message: Stored, at: float) -> Admitted:
    """The fact in a message of WITNESS, with the time and the sender that the log records for it.

    Raises `NotAdmitted` for a message that is not a fact its sender may state.
    """
    sender = _sender(message.subject)
    # Before decoding: a small message that nests deeply can exhaust the decoder's stack.
    if len(message.body) > STATED_BYTES or is_too_deep(message.body):
        raise NotAdmitted("it is too large or nested too deeply")
    try:
        stated = codec.decode_envelope(message.body)
        event = codec.decode_event(stated)
    except codec.BadRecord as error:
        raise NotAdmitted(str(error)) from None
    _check_kind(sender, stated, event)
    body = codec.encode_envelope(_log_envelope(stated, sender, message.position, at))
    if len(body) > STATED_BYTES:
        raise NotAdmitted(f"it would be {len(body):,} bytes in the log, where the limit is {STATED_BYTES:,}")
    subject = subjects.control(stated.name, sender.id)
    # Of two workers that register under one id at the same time, the second must learn of the first.
    replaces = event.replaces if isinstance(event, worker.WorkerRegistered) else None
    return Admitted(Draft(subject, body, _fact_id(message.position), _trace(message)), replaces)


def _trace(message: Stored) -> str:
    # A sender chooses its headers, and this one goes into a header of CONTROL.
    good = len(message.trace) <= TRACE_LENGTH and message.trace.isascii() and message.trace.isprintable()
    return message.trace if good else ""


def _sender(subject: str) -> Sender:
    match subject.split("."):
        case ["witness", "trial" | "worker" | "rest" as sort, id]:
            return Sender(sort, id)
    raise NotAdmitted("no sender may publish on this subject")


def _check_kind(sender: Sender, stated: Envelope, event: Any) -> None:
    if not stated.name.startswith(f"{sender.fact_prefix}.") or (
        sender.sort == "trial" and type(event) in GATEWAY_ONLY
    ):
        raise NotAdmitted(f"a {sender.sort} may not state {stated.name}")
    if type(event) is Unknown:
        # In the log, every service would skip it forever.
        raise NotAdmitted(
            f"{stated.name}, version {stated.version}, is from a newer release than the services"
        )
    if codec.subject_of(event) != subjects.control(stated.name, sender.id):
        raise NotAdmitted(f"this {stated.name} is not about its sender, {sender.fact_prefix} {sender.id}")
    # For trials, the records themselves have the other limits.
    limits = worker.limit_problem if sender.sort == "worker" else bounds.limit_problem
    if isinstance(event, trial.CheckpointStored):
        _check_checkpoint(event)
    if beyond := limits(event):
        raise NotAdmitted(f"{stated.name}: {beyond}")


def _check_checkpoint(event: trial.CheckpointStored) -> None:
    if not checkpoint_ids.may_register(event.trial_id, event.uuid, event.secret):
        raise NotAdmitted(f"checkpoint {event.uuid} is another trial's than {event.trial_id}")


def _log_envelope(stated: Envelope, sender: Sender, position: int, at: float) -> Envelope:
    # Ids and causes link events to each other, so nobody may use another sender's.
    # The gateway names the user for whom it speaks; everybody else is who the subject says.
    actor = stated.actor if sender.sort == "rest" else f"{sender.sort}:{sender.id}"
    return msgspec.structs.replace(
        # The id is made of the position in WITNESS, so that a fact that is admitted twice has the same id
        # both times.
        stated,
        id=_fact_id(position),
        actor=actor,
        at=at,
        cause="",
        witness=position,
        stated_at=stated.at,
    )


def _fact_id(position: int) -> str:
    return f"witness-{position}"
