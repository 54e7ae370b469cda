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
FORGOTTEN_S = 7.0
"""Silence in seconds after which a process counts as healthy or gone."""
MOST_SENDERS = 2_000
MOST_TROUBLES = 20
LONGEST = 300
"""Maximum length of a message in characters."""
AWAY = (NatsError, TimeoutError, OSError)

log = structlog.get_logger()


async def tell_signs(connection: Client, conditions: Conditions, replica: str) -> None:
    """Publish what is wrong with this process, while anything is, until cancelled."""
    subject, said = subjects.health_sign(conditions.program.split()[0], replica), False
    while True:
        wrong = [one for one in conditions.current() if KINDS[one.condition].told]
        if wrong or said:
            with contextlib.suppress(*AWAY):
                await connection.publish(subject, msgspec.json.encode(wrong[:MOST_TROUBLES]))
                said = bool(wrong)
        await asyncio.sleep(EVERY_S)


class Signs:
    """The recent health reports of all processes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._heard: dict[str, tuple[float, list[Trouble]]] = {}

    async def hear(self, connection: Client) -> None:
        """Subscribe to health reports."""
        await connection.subscribe(subjects.health_sign("*", "*"), cb=self._on_message)

    def current(self) -> list[Trouble]:
        """Return what is wrong elsewhere, oldest first."""
        now = self._clock()
        self._heard = {who: said for who, said in self._heard.items() if now - said[0] < FORGOTTEN_S}
        found = [one for _, troubles in self._heard.values() for one in troubles]
        return sorted(found, key=lambda one: one.since)

    async def _on_message(self, message: Msg) -> None:
        self.note(message.subject, message.data)

    def note(self, subject: str, body: bytes) -> None:
        """Store a health report. The subject determines the sender, whatever the message claims."""
        try:
            told = msgspec.json.decode(body, type=list[Trouble])
        except msgspec.MsgspecError as error:
            log.warning("sign.unreadable", subject=subject, error=str(error))
            return
        program, _, replica = subject.removeprefix("health.sign.").partition(".")
        name = f"worker {replica}" if program == "worker" else program
        if not told:
            self._heard.pop(subject, None)
        elif subject in self._heard or len(self._heard) < MOST_SENDERS:
            self._heard[subject] = self._clock(), list(_sound(told, name))


def _sound(told: list[Trouble], program: str) -> Iterable[Trouble]:
    for one in told[:MOST_TROUBLES]:
        if one.condition in KINDS and KINDS[one.condition].told:
            yield msgspec.structs.replace(
                one, program=program, message=one.message[:LONGEST], about=one.about[:LONGEST]
            )
