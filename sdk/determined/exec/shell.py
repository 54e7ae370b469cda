"""Runs a shell on a worker: the program of a SHELL task. Each connection gets its own OpenSSH server.

Reads `shell.json` in the info directory: `host` (address to listen on), `authorized_key`, and the private
`host_key`. There is no SSH port: the gateway opens a WebSocket, using a key that only the two know, and the
messages go to an `sshd -i`, which admits clients that have the private part of `authorized_key`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import os
import shlex
import shutil
import signal
import socket
import sys
import threading
from http import HTTPStatus
from pathlib import Path

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from det_contracts.page_key import HEADER, credential
from determined._info import info_directory
from determined.exec import _serving
from determined.exec._serving import Served, logger
from determined.launch._node import account_name, stop

PLACES = ("/usr/sbin/sshd", "/usr/local/sbin/sshd", "/opt/homebrew/sbin/sshd")
SEPARATION = Path("/run/sshd")
"""Privilege separation directory of root's sshd. Systems create it when they start the service."""
AT_ONCE = 64
"""Maximum number of concurrent connections to one shell."""
LARGEST = 1 << 20
"""Maximum size of a message in bytes."""
CHUNK = 64 << 10
NOT_PASSED = ("SSH_", "TERM", "SHLVL", "PWD", "OLDPWD", "_")
CONFIG = """\
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
AllowUsers {account}
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
PidFile none
PrintMotd no
X11Forwarding no
LoginGraceTime 30
MaxAuthTries 3
ClientAliveInterval 60
LogLevel ERROR
ForceCommand {folder}/enter
Subsystem sftp {sftp}
"""
ENTER = """\
#!/bin/sh
# A session of this task: its variables and its directory, then what was asked for.
. {folder}/variables
cd "$DET_WORKDIR" || exit 1
[ -n "$SSH_ORIGINAL_COMMAND" ] && exec "${{SHELL:-/bin/sh}}" -c "$SSH_ORIGINAL_COMMAND"
exec "${{SHELL:-/bin/sh}}" -i
"""
SFTP = ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server")


def main() -> int:
    """Serve until the task is killed."""
    task = _serving.served("shell.json", "det shell start")
    sshd = shutil.which("sshd") or next((path for path in PLACES if os.access(path, os.X_OK)), None)
    if sshd is None:
        stop(
            "this host has no SSH server, which a shell needs.\n"
            "Install it there, on each worker that should run shells: apt-get install openssh-server, or "
            "dnf install openssh-server. It need not run as a service. "
            "Until then 'det notebook start' has a terminal."
        )
    account = account_name("a shell", "Until then 'det notebook start' has a terminal.")
    # Not in or beside the working directory, which may be any folder of the host (`work_dir`).
    folder = info_directory().parent / "sshd"
    write(folder, task.order, account)
    # Without it, sshd of root refuses every connection.
    if os.geteuid() == 0:
        SEPARATION.mkdir(mode=0o755, exist_ok=True)
    # The parent may ignore this signal; then the exit of a server process could not be detected.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    logging.getLogger("websockets").setLevel(logging.ERROR)
    threading.Thread(target=_serving.announce, args=(task, account), daemon=True).start()
    asyncio.run(Shell(task, [sshd, "-i", "-f", str(folder / "config")]).serve())
    return 0


def write(folder: Path, order: dict[str, str], account: str) -> None:
    """Write sshd's files, readable only by its own user."""
    folder.mkdir(mode=0o700, exist_ok=True)
    sftp = next((path for path in SFTP if os.access(path, os.X_OK)), "internal-sftp")
    passed = {name: value for name, value in os.environ.items() if not name.startswith(NOT_PASSED)}
    # `export` refuses other names, such as the functions that bash exports, and the rest would be lost.
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in passed.items() if name.isidentifier()]
    for name, text, mode in (
        ("host_key", order["host_key"], 0o600),
        ("authorized_keys", f"{order['authorized_key']}\n", 0o600),
        ("variables", "".join(lines), 0o600),
        ("enter", ENTER.format(folder=shlex.quote(str(folder))), 0o700),
        ("config", CONFIG.format(folder=folder, account=account, sftp=sftp), 0o600),
    ):
        # Opened with their mode: between a write and a chmod others could read the keys.
        with open(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as file:
            file.write(text)


class Shell:
    """Connects each WebSocket to a single-connection SSH server."""

    def __init__(self, task: Served, argv: list[str]) -> None:
        self._task, self._argv = task, argv
        self._open = 0

    async def serve(self) -> None:
        """Serve until cancelled."""
        async with serve(
            self._connected,
            self._task.host,
            self._task.port,
            process_request=self._admitted,
            compression=None,
            max_size=LARGEST,
        ):
            await asyncio.get_running_loop().create_future()

    def _admitted(self, connection: ServerConnection, request: Request) -> Response | None:
        """Reject requests that are not from the gateway or exceed the connection limit; None to accept."""
        offered = request.headers.get(HEADER, "")
        # In constant time, so that the credential cannot be guessed letter by letter.
        if not hmac.compare_digest(offered.encode(), credential(self._task.info.session_token).encode()):
            return connection.respond(HTTPStatus.UNAUTHORIZED, "ask the gateway\n")
        if self._open >= AT_ONCE:
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, f"{AT_ONCE} sessions are open\n")
        return None

    async def _connected(self, client: ServerConnection) -> None:
        self._open += 1
        try:
            await self._session(client)
        finally:
            self._open -= 1

    async def _session(self, client: ServerConnection) -> None:
        ours, shell_end = socket.socketpair()
        # Closed here once the server has it. Otherwise this process would not see that the server has ended.
        with shell_end:
            server = await asyncio.create_subprocess_exec(
                *self._argv, stdin=shell_end.fileno(), stdout=shell_end.fileno()
            )
        reader, writer = await asyncio.open_connection(sock=ours, limit=CHUNK)
        ways = (_to_server(client, writer), _to_client(reader, client))
        works = [asyncio.create_task(way) for way in ways]
        try:
            # When one direction ends, so does the session: the other would wait for data forever.
            await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for work in works:
                work.cancel()
            writer.close()
            with contextlib.suppress(ProcessLookupError):
                server.terminate()
            await server.wait()
            logger.debug("a session is over")


async def _to_server(client: ServerConnection, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionClosed, OSError):
        async for message in client:
            writer.write(message.encode() if isinstance(message, str) else message)
            await writer.drain()


async def _to_client(reader: asyncio.StreamReader, client: ServerConnection) -> None:
    with contextlib.suppress(ConnectionClosed, OSError):
        while chunk := await reader.read(CHUNK):
            await client.send(chunk)


if __name__ == "__main__":
    sys.exit(main())
