"""The gateway as a process, beside a real broker."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import time
from pathlib import Path

import httpx
import nats

from det_contracts import codec
from services.kit import broker
from tests.fixtures.fork_server import ForkedProcess
from tests.fixtures.service_processes import start_service


def eventually(look, what, within_s=60):
    deadline = time.monotonic() + within_s
    while True:
        with contextlib.suppress(httpx.TransportError):
            if result := look():
                return result
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)


class Running:
    """A gateway that can be stopped and started again, with a broker of its own or at that of another."""

    def __init__(self, folder: Path, beside: Running | None = None) -> None:
        self.folder = folder
        # The port of the gateway, those of the broker.
        self._held = [broker.held_port() for _ in range(3)]
        self.port, self.nats_port, self.monitor_port = map(broker.port_of, self._held)
        (folder / "key").write_text("a key that is long enough")
        self.broker = None if beside else self._start_broker()
        self.nats_url = beside.nats_url if beside else f"nats://127.0.0.1:{self.nats_port}"
        self.gateway: ForkedProcess | None = None
        self._ids = itertools.count()
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=60)

    def _start_broker(self) -> subprocess.Popen[bytes]:
        folder = self.folder / "broker"
        folder.mkdir()
        config = broker.write_config(folder, port=self.nats_port, monitor_port=self.monitor_port)
        with (self.folder / "broker.log").open("wb") as output:
            process = subprocess.Popen(broker.command(config), stdout=output, stderr=output)
        broker.wait_until_healthy(self.monitor_port)
        return process

    def start(self) -> Running:
        environment = os.environ | {
            "STEADFAST_NATS_URL": self.nats_url,
            "STEADFAST_DATABASE_URL": f"sqlite:///{self.folder / 'gateway.db'}",
            "STEADFAST_PORT": str(self.port),
            "STEADFAST_BLOBS": str(self.folder / "blobs"),
            "STEADFAST_CHECKPOINTS": str(self.folder / "checkpoints"),
            "STEADFAST_TOKEN_KEY": str(self.folder / "key"),
        }
        with (self.folder / "gateway.log").open("ab") as output:
            self.gateway = start_service("services.gateway", env=environment, stdout=output, stderr=output)
        try:
            eventually(lambda: self.client.get("/info").status_code == 200, "the gateway")
        except BaseException:
            # Left open, it would be a warning in whatever test the garbage is collected in.
            self.close()
            raise
        return self

    def stop(self) -> int:
        assert self.gateway is not None
        self.gateway.send_signal(signal.SIGTERM)
        return self.gateway.wait(60)

    def log_in(self) -> None:
        body = b'{"username": "determined", "password": ""}'
        token = self.client.post("/api/v1/auth/login", content=body).json()["token"]
        self.client.headers["Authorization"] = f"Bearer {token}"

    async def append(self, *events: object) -> None:
        client = await nats.connect(self.nats_url)
        for event in events:
            body = codec.encode(event, id=f"live-{next(self._ids)}", actor="test", at=1_700_000_000.0)
            await client.jetstream().publish(codec.subject_of(event), body)
        await client.close()

    def consumers(self, stream: str) -> int:
        answer = httpx.get(f"http://127.0.0.1:{self.monitor_port}/jsz?streams=true")
        streams = answer.json()["account_details"][0]["stream_detail"]
        return int(next(detail["state"]["consumer_count"] for detail in streams if detail["name"] == stream))

    def close(self) -> None:
        self.client.close()
        for process in (self.gateway, self.broker):
            if process is not None and process.poll() is None:
                process.terminate()
                process.wait(60)
        for held in self._held:
            held.close()
