"""A broker and connections for benchmarks, gone when they end."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import nats
from nats.aio.client import Client

from services.kit import broker
from services.kit.log_jetstream import ensure_streams


class Broker:
    """A nats-server configured as in a local cluster, without accounts."""

    def __init__(self, folder: Path) -> None:
        self._held = broker.held_port(), broker.held_port()
        self._ports = tuple(map(broker.port_of, self._held))
        self._config = broker.write_config(folder, port=self._ports[0], monitor_port=self._ports[1])
        self.url = f"nats://127.0.0.1:{self._ports[0]}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and wait until it accepts work."""
        self.process = subprocess.Popen(
            broker.command(self._config), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        broker.wait_until_healthy(self._ports[1])

    def stop(self) -> None:
        """Kill it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def close(self) -> None:
        """Let others have its ports."""
        for held in self._held:
            held.close()


@contextlib.contextmanager
def running_broker() -> Iterator[Broker]:
    """A broker for the length of a `with`."""
    with tempfile.TemporaryDirectory(prefix="steadfast-bench-") as folder:
        server = Broker(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()
            server.close()


async def make_streams(server: Broker) -> None:
    """The three streams, for programs that expect them."""
    async with connected(server):
        pass


@contextlib.asynccontextmanager
async def connected(server: Broker) -> AsyncIterator[Client]:
    """A connection with the three streams in place."""
    client = await nats.connect(server.url)
    await ensure_streams(client.jetstream())
    try:
        yield client
    finally:
        await client.close()
