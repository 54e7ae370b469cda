"""`python -m determined.cli.tunnel MASTER SHELL`: ssh runs it to reach a shell through the master.

Bytes from standard input are sent to the shell as WebSocket messages, and vice versa. `DET_SHELL_TOKEN` in
the environment is the user's session token. Without it, the shell's key alone must authenticate the user.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import sys
import threading
from urllib.parse import urlsplit, urlunsplit

from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect

from determined.transport import identity
from determined.transport.rest import Session

CHUNK = 64 << 10
TOKEN = "DET_SHELL_TOKEN"  # noqa: S105
CERTIFICATE = "DET_MASTER_CERT_FILE"


def main(argv: list[str]) -> int:
    """Connect standard input and output to a shell until either ends. Returns 1 if it cannot be reached."""
    if len(argv) != 2:
        print("usage: python -m determined.cli.tunnel MASTER SHELL", file=sys.stderr)
        return 2
    address, token = address_of(*argv), os.environ.get(TOKEN) or _signed_in(argv[0])
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        # ssh has compressed and encrypted its bytes, so compressing them again would only cost time.
        tls = _tls(address)
        with connect(
            address, additional_headers=headers, ssl=tls, compression=None, max_size=None, proxy=None
        ) as shell:
            _joined(shell)
    except InvalidStatus as error:
        print(
            f"shell {argv[1]} cannot be reached: the master answered {_answer_text(error)}", file=sys.stderr
        )
        return 1
    except (OSError, WebSocketException) as error:
        print(f"shell {argv[1]} cannot be reached through {argv[0]}: {error}", file=sys.stderr)
        return 1
    return 0


def address_of(master: str, shell: str) -> str:
    """Return the WebSocket address of a shell.

    >>> address_of("https://master:8443", "7f")
    'wss://master:8443/proxy/7f/'
    """
    parts = urlsplit(master if "://" in master else f"http://{master}")
    scheme = "wss" if parts.scheme == "https" else "ws"
    return urlunsplit((scheme, parts.netloc, f"{parts.path.rstrip('/')}/proxy/{shell}/", "", ""))


def _signed_in(master: str) -> str | None:
    """Return the token of the logged-in user, or None."""
    with Session(master, pauses=()) as session, contextlib.suppress(Exception):
        identity.sign_in(session, None)
        return session.token
    return None


def _answer_text(error: InvalidStatus) -> str:
    return f"{error.response.status_code} {error.response.body.decode(errors='replace')[:500]}"


def _tls(address: str) -> ssl.SSLContext | None:
    if not address.startswith("wss:"):
        return None
    chosen = os.environ.get(CERTIFICATE) or ""
    context = ssl.create_default_context(cafile=chosen if os.path.isfile(chosen) else None)
    if chosen.lower() == "noverify":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _joined(shell: ClientConnection) -> None:
    # A daemon: nothing can interrupt its read of standard input when the shell has closed the connection.
    threading.Thread(target=_send, args=(shell,), daemon=True).start()
    with contextlib.suppress(ConnectionClosed, BrokenPipeError):
        for message in shell:
            os.write(1, message.encode() if isinstance(message, str) else message)


def _send(shell: ClientConnection) -> None:
    with contextlib.suppress(ConnectionClosed):
        while chunk := os.read(0, CHUNK):
            shell.send(chunk)
        shell.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
