"""Facts that workers state about their hosts and the processes on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from det_contracts.codec import event
from det_contracts.events import scheduler
from det_contracts.limits import MAX_EXACT_INTEGER, NAME_CHARACTERS, TEXT_CHARACTERS, WORKER_SLOTS, is_name


class Slot(msgspec.Struct, frozen=True):
    """An accelerator, or a share of the CPU, that a worker offers."""

    id: int
    kind: str
    """`cuda` or `cpu`."""
    uuid: str
    brand: str


class Limit(msgspec.Struct, frozen=True):
    """How much of one thing a worker lets each run use."""

    kind: str
    """`memory`, `processes`, `processor` or `disk`."""
    holds: bool
    """Whether there is a limit."""
    text: str
    """The limit in words, or why there is none."""


@event("worker.registered", key="worker_id")
class WorkerRegistered(msgspec.Struct, frozen=True, kw_only=True):
    """A worker has started, or returned after an absence. The scheduler uses its slots from now on."""

    worker_id: str
    instance: str = ""
    """Id of its folder, which distinguishes it from another worker with the same id.

    Empty in older events.
    """
    host: str = ""
    """Name of the machine or container."""
    session: str
    """New for each registration."""
    pool: str
    address: str
    version: str
    slots: tuple[Slot, ...]
    reads_after: int
    """Position of CONTROL from which the worker continues reading. It will receive later assignments."""
    replaces: int | None = None
    """Position in CONTROL of what the worker took for the latest registration of this id; 0 for none.

    If there is a newer one by now, this one is not admitted. None in older events.
    """
    running: tuple[str, ...]
    """Allocations whose processes it holds, or whose end it has not reported yet.

    All others on it are gone.
    """
    launcher: str = "process"
    """What starts its tasks: `process`, or the container engine's name. Older workers had only processes."""
    limits: tuple[Limit, ...] = ()
    """What each run on it may use. Empty in older events, which do not tell."""


def is_different_worker(event: WorkerRegistered, instance: str, host: str) -> bool:
    """Whether the registering worker is another one than that with this folder on this host.

    While the latter is present, such a registration has no effect: all readers skip it. Workers of earlier
    versions did not identify themselves.
    """
    return bool(instance and event.instance != instance) or bool(host and event.host != host)


SESSIONS_REMEMBERED = 8
"""Per worker id. A registration comes twice at once, or never."""


def remember_session(sessions: tuple[str, ...], session: str) -> tuple[str, ...]:
    """The sessions of the newest registrations under a worker's id, with another one.

    Each registration begins a session, so one whose session is among these is a repeat: the broker may store
    a message twice. All readers skip it, because what it says of runs is out of date. One that was refused
    counts as well, because its repeat may come when the worker that had the id is gone.
    """
    return (*sessions, session)[-SESSIONS_REMEMBERED:]


@event("worker.left", key="worker_id")
class WorkerLeft(msgspec.Struct, frozen=True):
    """The worker was stopped on purpose, and none of its processes runs any more."""

    worker_id: str
    session: str
    """That of its newest registration.

    If the worker has another one by now, the message comes too late, and all readers skip it.
    """


def is_about_session(event: scheduler.WorkerLost | WorkerLeft, session: str) -> bool:
    """Whether a message that a worker is gone is about its session, and not about one before."""
    if isinstance(event, scheduler.WorkerLost) and not event.session:
        return True
    return event.session == session


@event("worker.allocation_started", key="worker_id")
class AllocationStarted(msgspec.Struct, frozen=True):
    """The entrypoint of an allocation runs on this worker."""

    worker_id: str
    allocation_id: str


@event("worker.allocation_exited", key="worker_id")
class AllocationExited(msgspec.Struct, frozen=True, kw_only=True):
    """The worker's share of an allocation has ended and its log is shipped.

    Stated once per allocation and worker.
    """

    worker_id: str
    allocation_id: str
    exit_code: int | None = None
    """128 + n after signal n; None if nothing could be started."""
    message: str = ""
    """What went wrong before the entrypoint started, or permanently with it, as text for the user."""
    lost: bool = False
    """Its host ended it because it was out of contact, or found it gone. Not counted as a failure."""
    permanent: bool = False
    """Whether a retry would fail the same way: a file or module is missing, or the code is not Python.
    False in older events.
    """


def limit_problem(fact: Any) -> str:
    """Return which field of a worker's fact is too large or cannot be stored; empty if none.

    Checked when facts are admitted, not when they are read: what earlier versions admitted stays in the log.

    >>> limit_problem(WorkerLeft("w", "a" * 600))
    'session has 600 characters, or a NUL: at most 512 are taken, without one'
    """
    if isinstance(fact, WorkerRegistered) and len({slot.id for slot in fact.slots}) < len(fact.slots):
        return "slots have the same id twice"
    return next(_limit_problems(fact), "")


def _limit_problems(record: Any, within: str = "") -> Iterator[str]:
    for name in record.__struct_fields__:
        value, path = getattr(record, name), within + name
        most = TEXT_CHARACTERS if name == "message" else NAME_CHARACTERS
        if isinstance(value, tuple):
            if len(value) > WORKER_SLOTS:
                yield f"{path} are {len(value)}: at most {WORKER_SLOTS} are taken"
            for element in value:
                if isinstance(element, msgspec.Struct):
                    yield from _limit_problems(element, f"{path}.")
                elif not is_name(element):
                    yield f"{path} hold a name of {len(element)} characters, or with a NUL"
        elif isinstance(value, str) and (len(value) > most or "\0" in value):
            yield f"{path} has {len(value)} characters, or a NUL: at most {most} are taken, without one"
        elif isinstance(value, int) and abs(value) > MAX_EXACT_INTEGER:
            yield f"{path} is beyond {MAX_EXACT_INTEGER}"
