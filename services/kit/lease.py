"""Determines which replica of a service currently decides.

The lease is a key in a JetStream KV bucket that expires unless it is renewed. It only avoids wasted work;
what prevents double decisions is the fence on the log.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.client import JetStreamContext
from nats.js.errors import Error as JetStreamError
from nats.js.errors import KeyNotFoundError, KeyWrongLastSequenceError
from nats.js.kv import KeyValue

from det_contracts import subjects
from services.kit.jetstream_api import request_with_retry
from services.kit.log_jetstream import ensure_stream

BUCKET = subjects.LEASES
TTL_S = 2.0
RENEW_S = 0.6
CLAIM_TIMEOUT_S = 1.0
"""Seconds after which an unanswered claim is repeated, because its bucket may have a new leader."""
RETRY_S = 0.2
NANOSECONDS = 1_000_000_000
UNREACHABLE_ERRORS = (NatsError, JetStreamError, TimeoutError, OSError)


class Lease:
    """One replica's claim to decide for `name`."""

    def __init__(self, connection: Client, name: str, holder: str, *, replicas: int = 1) -> None:
        """`replicas` must match the streams, so that losing a broker does not lose the lease."""
        self._connection = connection
        self._replicas = replicas
        self._name = name
        self._holder = holder.encode()
        self._revision = 0
        self._changed = asyncio.Event()
        self._bucket: KeyValue | None = None
        self.active = False
        self.wanted: Callable[[], bool] = lambda: True
        """Whether this replica can decide at all. If not, it leaves the lease to others."""

    async def hold(self) -> None:
        """Take the lease when it is free and renew it until cancelled; then release it."""
        loop = asyncio.get_running_loop()
        renewed = loop.time()
        try:
            while True:
                pause = RENEW_S
                if not self.wanted():
                    await self._release()
                    await asyncio.sleep(RENEW_S)
                    continue
                try:
                    async with asyncio.timeout(CLAIM_TIMEOUT_S):
                        held = await self._claim()
                    renewed = loop.time()
                except UNREACHABLE_ERRORS as error:
                    pause = RETRY_S
                    if isinstance(error, JetStreamError):
                        # The bucket is in memory, so it may be gone after a broker restart.
                        self._bucket = None
                    # Without contact, no other replica can take over either before the key expires.
                    held = self.active and loop.time() - renewed < TTL_S
                self._set(held)
                await asyncio.sleep(pause)
        finally:
            await self._release()

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
            self._bucket = await open_bucket(
                self._connection.jetstream(), self._replicas, adjust=self._name == subjects.INTAKE
            )
        try:
            if self.active:
                # With the revision: after a pause longer than the TTL, another replica may hold the key.
                self._revision = await self._bucket.update(self._name, self._holder, last=self._revision)
            else:
                self._revision = await self._bucket.create(self._name, self._holder)
        except KeyWrongLastSequenceError:
            return await self._is_mine(self._bucket)
        return True

    async def _is_mine(self, bucket: KeyValue) -> bool:
        """Whether this replica holds the lease: its last claim was stored unnoticed, or the key was free."""
        try:
            entry = await bucket.get(self._name)
        except KeyNotFoundError:
            with contextlib.suppress(KeyWrongLastSequenceError):
                self._revision = await bucket.create(self._name, self._holder)
                return True
            return False
        self._revision = entry.revision or 0
        return entry.value == self._holder

    async def _release(self) -> None:
        if self.active and self._bucket is not None:
            with contextlib.suppress(*UNREACHABLE_ERRORS):
                async with asyncio.timeout(0.5):
                    # Released at once, so that a replica can take over without waiting for the expiry.
                    await self._bucket.purge(self._name)
        self._set(False)


async def open_bucket(js: JetStreamContext, replicas: int, *, adjust: bool = True) -> KeyValue:
    """Open the bucket of all leases, creating it or, with `adjust`, setting its replicas.

    It is in memory, because its contents are obsolete within seconds, and read only from its leader.
    """
    name = f"KV_{BUCKET}"
    config = {
        "name": name,
        "subjects": [f"$KV.{BUCKET}.>"],
        "storage": "memory",
        "num_replicas": replicas,
        "max_msgs_per_subject": 1,
        # The TTL of the whole bucket: the broker expires a claim by itself, so a holder that was killed
        # blocks nobody.
        "max_age": int(TTL_S * NANOSECONDS),
        "duplicate_window": int(TTL_S * NANOSECONDS),
        "discard": "new",
        "allow_rollup_hdrs": True,
        "deny_delete": True,
    }
    answer = await request_with_retry(js._nc, f"STREAM.INFO.{name}", {})
    if answer.get("config", {}).get("storage") == "file":
        # Created by an earlier version; the broker cannot change the storage type.
        await request_with_retry(js._nc, f"STREAM.DELETE.{name}", {})
    await ensure_stream(js, config, adjust=adjust)
    return await js.key_value(BUCKET)
