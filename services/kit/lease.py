"""Which replica of a service decides just now.

A key in a JetStream KV bucket that vanishes when it is not renewed. The lease only saves wasted work: what
makes double decisions impossible is the fence on the log.
"""

from __future__ import annotations

import asyncio
import contextlib

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.api import KeyValueConfig
from nats.js.errors import Error as JetStreamError
from nats.js.errors import KeyNotFoundError, KeyWrongLastSequenceError
from nats.js.kv import KeyValue

BUCKET = "leases"
TTL_S = 2.0
RENEW_S = 0.6
AWAY = (NatsError, JetStreamError, TimeoutError, OSError)


class Lease:
    """One replica's claim to decide for `name`."""

    def __init__(self, connection: Client, name: str, holder: str) -> None:
        self._connection = connection
        self._name = name
        self._holder = holder.encode()
        self._revision = 0
        self._changed = asyncio.Event()
        self._bucket: KeyValue | None = None
        self.active = False

    async def hold(self) -> None:
        """Take the lease when it is free and renew it, until cancelled; then give it back."""
        loop = asyncio.get_running_loop()
        renewed = loop.time()
        try:
            while True:
                try:
                    async with asyncio.timeout(TTL_S):
                        held = await self._claim()
                    renewed = loop.time()
                except AWAY:
                    # Out of touch: nobody else can take over either before the key expires.
                    held = self.active and loop.time() - renewed < TTL_S
                self._set(held)
                await asyncio.sleep(RENEW_S)
        finally:
            await self._give_back()

    async def wait_for_change(self) -> None:
        """Wait until `active` changes."""
        await self._changed.wait()
        self._changed.clear()

    def _set(self, active: bool) -> None:
        if active != self.active:
            self.active = active
            self._changed.set()

    async def _claim(self) -> bool:
        if self._bucket is None:
            config = KeyValueConfig(bucket=BUCKET, ttl=TTL_S, history=1)
            self._bucket = await self._connection.jetstream().create_key_value(config)
        try:
            if self.active:
                self._revision = await self._bucket.update(self._name, self._holder, last=self._revision)
            else:
                self._revision = await self._bucket.create(self._name, self._holder)
        except KeyWrongLastSequenceError:
            return await self._is_mine(self._bucket)
        return True

    async def _is_mine(self, bucket: KeyValue) -> bool:
        """Whether the last claim was stored though its answer got lost."""
        try:
            entry = await bucket.get(self._name)
        except KeyNotFoundError:
            return False
        self._revision = entry.revision or 0
        return entry.value == self._holder

    async def _give_back(self) -> None:
        if self.active and self._bucket is not None:
            with contextlib.suppress(*AWAY):
                async with asyncio.timeout(0.5):
                    await self._bucket.purge(self._name)
        self._set(False)
