"""Health reports between processes over the bus, repeated while anything is wrong and once after."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable

import msgspec
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from det_contracts import subjects
from services.kit.conditions import KINDS, Conditions, Trouble

EVERY_S = 2.0
EXPIRY_S = 7.0
"""Silence in seconds after which a process counts as healthy or gone."""
MAX_SENDERS = 2_000
MAX_TROUBLES = 20
MAX_MESSAGE_CHARACTERS = 300
"""Maximum length of a message in characters."""
UNREACHABLE_ERRORS = (NatsError, TimeoutError, OSError)

log = structlog.get_logger()


async def publish_health(connection: Client, conditions: Conditions, replica: str) -> None:
    """Publish what is wrong with this process, while anything is, until cancelled."""
    subject, was_published = subjects.health_sign(conditions.program.split()[0], replica), False
    while True:
        wrong = [trouble for trouble in conditions.current() if KINDS[trouble.condition].is_reported]
        # The empty report after the last one tells the others at once, instead of after `EXPIRY_S`.
        if wrong or was_published:
            with contextlib.suppress(*UNREACHABLE_ERRORS):
                await connection.publish(subject, msgspec.json.encode(wrong[:MAX_TROUBLES]))
                was_published = bool(wrong)
        await asyncio.sleep(EVERY_S)


class HealthReports:
    """The recent health reports of all processes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._reports: dict[str, tuple[float, list[Trouble]]] = {}

    async def subscribe(self, connection: Client) -> None:
        """Subscribe to health reports."""
        await connection.subscribe(subjects.health_sign("*", "*"), cb=self._on_message)

    def current(self) -> list[Trouble]:
        """Return what is wrong elsewhere, oldest first."""
        now = self._clock()
        self._reports = {who: report for who, report in self._reports.items() if now - report[0] < EXPIRY_S}
        troubles = [trouble for _, reported in self._reports.values() for trouble in reported]
        return sorted(troubles, key=lambda trouble: trouble.since)

    async def _on_message(self, message: Msg) -> None:
        self.record(message.subject, message.data)

    def record(self, subject: str, body: bytes) -> None:
        """Store a health report. The subject determines the sender, whatever the message claims."""
        try:
            troubles = msgspec.json.decode(body, type=list[Trouble])
        except msgspec.MsgspecError as error:
            log.warning("sign.unreadable", subject=subject, error=str(error))
            return
        program, _, replica = subject.removeprefix("health.sign.").partition(".")
        name = f"worker {replica}" if program == "worker" else program
        if not troubles:
            self._reports.pop(subject, None)
        # Workers choose their ids, and one that invents them must not fill the memory.
        elif subject in self._reports or len(self._reports) < MAX_SENDERS:
            self._reports[subject] = self._clock(), list(_valid_troubles(troubles, name))


def _valid_troubles(troubles: list[Trouble], program: str) -> Iterable[Trouble]:
    for trouble in troubles[:MAX_TROUBLES]:
        if trouble.condition in KINDS and KINDS[trouble.condition].is_reported:
            yield msgspec.structs.replace(
                trouble,
                # A worker may publish under its own subject only, but write anything into the message.
                program=program,
                message=trouble.message[:MAX_MESSAGE_CHARACTERS],
                about=trouble.about[:MAX_MESSAGE_CHARACTERS],
            )
