"""The background thread that owns the connection to the broker.

The script's threads hand over work and continue. Everything for the broker passes through this thread, in
order, and is retried until it is stored. Nothing in here raises into a training loop.
"""

import determined.transport.broker_client  # noqa: F401

# isort: split
import asyncio
import concurrent.futures
import contextlib
import json
import logging
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import nats
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError
from nats.js.errors import APIError

from determined.transport import refusals
from determined.transport.event_loop import ScriptLoop

T = TypeVar("T")
logger = logging.getLogger("determined.transport")

ACK_TIMEOUT_S = 5.0
RETRY_S = 0.25
HURRY_S = 2.0
CREDENTIALS_EVERY_S = 60.0
"""How often to check for renewed credentials."""
PING_EVERY_S = 10
"""A broker that stops responding is given up after three pings."""
UNREACHABLE_ERRORS = (NatsError, APIError, TimeoutError, OSError)
"""Errors seen while a broker is unreachable or electing a leader."""
HEADER_BYTES = 1024
"""Allowance for headers in the broker's payload limit. Exceeding the limit closes the connection."""
WARNED_AGAIN_S = 10.0
LEAVE_S = 5.0


def _is_news(record: logging.LogRecord) -> bool:
    # asyncio warns whenever a TLS connection of nats-py ends; nothing can be done about that.
    return not str(record.msg).startswith("returning true from eof_received()")


class BusThread:
    """A self-restoring connection and the event loop it runs in."""

    def __init__(
        self,
        urls: Sequence[str],
        credentials: str | None,
        inbox_prefix: str,
        authorities_path: Path | None = None,
    ) -> None:
        """Prepare a connection. Nothing is opened until it is needed.

        Args:
            urls: Addresses of brokers.
            credentials: Path of the credentials file, or None if the brokers need none.
            inbox_prefix: Prefix of the subjects on which replies to this process arrive.
            authorities_path: A JSON file whose `ca` field holds additional trusted authorities, in PEM, for
                brokers at `tls://`.

        Both files may be replaced at any time.
        """
        self._urls, self._authorities_path = list(urls), authorities_path
        self._credentials = credentials
        self._trusted = ""
        """The authorities used by the latest connection."""
        self._inbox_prefix = inbox_prefix
        self._connected_with = b""
        """The credentials used by the current connection."""
        self._loop = ScriptLoop()
        # A daemon: a script that ends must not be kept alive by it. `atexit` sends what is left.
        self._thread = threading.Thread(target=self._run, name="determined-bus", daemon=True)
        self._connected: asyncio.Task[Client] | None = None
        # Made in the script's thread and waited for in the other: an Event belongs to a loop only once it is
        # waited for.
        self._moved = asyncio.Event()
        """Set when the connection was replaced: replies to requests on the old one will not arrive."""
        self._leaving = False
        self._trouble: Exception | None = None
        self._warned, self._warned_at = False, float("-inf")
        self._forbidden: dict[str, asyncio.Future[None]] = {}
        """By subject, in lower case: done once the broker has said that nothing may be published to it."""

    def start(self) -> None:
        """Start the thread, which connects in the background. Returns immediately."""
        self._thread.start()
        if self._credentials is not None or self._has_tls:
            self.keep_going(self._take_up_renewals, "looking after the credentials")

    async def _take_up_renewals(self) -> None:
        """Reconnect with renewed credentials before the old ones expire.

        New authorities are used for the next connection. The worker renews the files in time.
        The broker permanently closes a connection whose credentials expire.
        """
        while True:
            await asyncio.sleep(CREDENTIALS_EVERY_S)
            if self._has_tls and self._authorities() not in ("", self._trusted):
                (await self.connection()).options |= self._tls()
            renewed = self._read_credentials()
            # A file that cannot be read now must not cost a connection that works.
            if renewed and renewed != self._connected_with:
                client = await self.connection()
                self._connected_with = renewed
                # The client reads the file anew each time it connects.
                await client.force_reconnect()

    @property
    def _has_tls(self) -> bool:
        return any(url.startswith("tls://") for url in self._urls)

    def _authorities(self) -> str:
        """Return the additional authorities; empty if none are configured or the file cannot be read now."""
        try:
            if self._authorities_path is None:
                return ""
            return str(json.loads(self._authorities_path.read_bytes()).get("ca") or "")
        except (OSError, ValueError):
            return ""

    def _read_credentials(self) -> bytes:
        """Return the credentials; empty if they cannot be read now."""
        try:
            with open(self._credentials or "", "rb") as file:
                return file.read()
        except OSError:
            return b""

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._connected = self._loop.create_task(self._connect())
        self._loop.run_forever()
        self._loop.close()

    async def _connect(self) -> Client:
        async def on_error(error: Exception) -> None:
            if subject := refusals.forbidden_subject(error):
                self._forbid(subject)
            else:
                self._note_trouble(error)

        async def on_reconnect() -> None:
            self._note_reconnected()

        while True:
            # Read before they are used: if they are replaced in between, the renewal is noticed once more,
            # and not missed.
            self._connected_with = self._read_credentials()
            try:
                return await nats.connect(
                    self._urls,
                    user_credentials=self._credentials,
                    inbox_prefix=self._inbox_prefix.encode(),
                    # Without end: a broker that the client has given up is not tried again.
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=RETRY_S,
                    ping_interval=PING_EVERY_S,
                    **self._tls(),
                    # Larger than a message of 8 MiB, for which the client's own limit would be too small.
                    pending_size=16 * 1024 * 1024,
                    error_cb=on_error,
                    reconnected_cb=on_reconnect,
                )
            except UNREACHABLE_ERRORS as error:
                self._note_trouble(error)
                await asyncio.sleep(RETRY_S)

    def _tls(self) -> dict[str, Any]:
        if not self._has_tls:
            return {}
        context = ssl.create_default_context()
        if authorities := self._authorities():
            context.load_verify_locations(cadata=authorities)
        self._trusted = authorities
        logging.getLogger("asyncio").addFilter(_is_news)
        # TLS from the first byte; otherwise a man in the middle could prevent the upgrade to TLS.
        return {"tls": context, "tls_handshake_first": True}

    def _note_trouble(self, error: Exception) -> None:
        # Log one line per outage, regardless of the number of attempts. Training continues meanwhile.
        if not self._warned and time.monotonic() - self._warned_at > WARNED_AGAIN_S:
            self._warned, self._warned_at = True, time.monotonic()
            logger.warning(
                "cannot reach the cluster (%r); reports are buffered and will be sent when it is back", error
            )
        self._trouble = error

    @property
    def trouble(self) -> str:
        """The current connection problem, as a suffix for log messages; empty if there is none."""
        if self._trouble is None:
            return ""
        # Omit user info from the address, because it may contain a password.
        hosts = ", ".join(urlsplit(url).netloc.rpartition("@")[2] for url in self._urls)
        return f" ({hosts}: {self._trouble!r})"

    def check(self) -> None:
        """Raise RuntimeError if the thread is not running, for example in a process created by `os.fork`."""
        if not self._thread.is_alive():
            raise RuntimeError("the thread that talks to the cluster does not run in this process (any more)")

    def submit(self, work: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        """Run a coroutine in the thread, for callers that check its result."""
        if not self._thread.is_alive():
            work.close()
            self.check()
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def soon(self, do: Callable[..., object], *arguments: object) -> None:
        """Call a function in the thread's event loop. Raises RuntimeError if the thread has ended."""
        try:
            self._loop.call_soon_threadsafe(do, *arguments)
        except RuntimeError:
            self.check()
            raise

    def keep_going(self, work: Callable[[], Coroutine[Any, Any, Any]], what: str) -> None:
        """Run an endless coroutine. If it fails, log the error and restart it."""
        self.submit(self._keeping(work, what))

    async def _keeping(self, work: Callable[[], Coroutine[Any, Any, Any]], what: str) -> None:
        failure = ""
        while True:
            try:
                await work()
            except Exception as error:
                # Log a repeated failure only once.
                if repr(error) != failure:
                    failure = repr(error)
                    logger.exception("%s failed and is restarted, nothing is lost; please report this", what)
            # Without end: an outage may last for hours, and a script is not ended for it.
            await asyncio.sleep(RETRY_S)

    async def connection(self) -> Client:
        """Return the connection once it is established, replacing one that was closed permanently.

        The broker closes a connection permanently if, for example, it is too slow or the broker's settings
        change.
        """
        if self._connected is None or (self._is_of_no_use(self._connected) and not self._leaving):
            self._connected = self._loop.create_task(self._connect())
            self._note_reconnected()
        # Shielded, because all callers wait for the same attempt, and one of them may be cancelled.
        return await asyncio.shield(self._connected)

    def _is_of_no_use(self, connected: "asyncio.Task[Client]") -> bool:
        return connected.done() and (connected.exception() is not None or connected.result().is_closed)

    def _note_reconnected(self) -> None:
        # The credentials of the new connection may allow more.
        self._forbidden = {
            subject: violation for subject, violation in self._forbidden.items() if not violation.done()
        }
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    async def store(self, subject: str, body: bytes, id: str) -> None:
        """Store a message in its stream exactly once, retrying for as long as it takes.

        Raises `Refused` if it can never be stored.
        """

        async def publish(client: Client) -> None:
            # Room for the reply's subject and the id of the message, which the limit includes.
            most = client.max_payload - HEADER_BYTES
            if len(body) > most:
                raise refusals.too_large(len(body), most)
            # The broker drops a second message of this id, so one whose answer was lost can be sent again.
            reply = await self._request(client, subject, body, {"Nats-Msg-Id": id})
            error = json.loads(reply).get("error")
            if error:
                raise refusals.of_answer(subject, error)

        await self._until_done(publish)

    async def ask(self, subject: str, body: bytes, within_s: float = ACK_TIMEOUT_S) -> bytes:
        """Send a request until it is answered, retrying after `within_s` without a reply.

        Raises `Refused`.
        """

        async def request(client: Client) -> bytes:
            return await self._request(client, subject, body, within_s=within_s)

        return await self._until_done(request)

    async def wait_for_news(
        self, subject: str, body: bytes, within_s: float, hurry: Callable[[], bool]
    ) -> bytes | None:
        """Send a long-poll request. Returns None if it must be sent again.

        That is the case if nobody is there to reply, the connection was replaced, or a caller is in a `hurry`
        and the replica that received the request may be gone.
        """

        async def request(client: Client) -> bytes | None:
            reply = asyncio.ensure_future(self._request(client, subject, body, within_s=within_s))
            moved = asyncio.ensure_future(self._moved.wait())
            try:
                while not (reply.done() or moved.done()):
                    # Also without news, to look whether the script is in a hurry.
                    await asyncio.wait({reply, moved}, timeout=HURRY_S, return_when=asyncio.FIRST_COMPLETED)
                    if hurry():
                        break
                return reply.result() if reply.done() else None
            except NoRespondersError:
                # Only the service is unreachable, not the broker, so reports are still being stored.
                return None
            finally:
                reply.cancel()
                moved.cancel()

        return await self._until_done(request)

    async def _request(
        self,
        client: Client,
        subject: str,
        body: bytes,
        headers: dict[str, str] | None = None,
        within_s: float = ACK_TIMEOUT_S,
    ) -> bytes:
        # The broker reports a permission error separately; the request itself never gets a reply.
        forbidden = self._violation_of(subject)
        if not forbidden.done():
            reply = asyncio.ensure_future(client.request(subject, body, timeout=within_s, headers=headers))
            either: set[asyncio.Future[Any]] = {reply, forbidden}
            try:
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                if reply.done():
                    return reply.result().data
            finally:
                reply.cancel()
        raise refusals.forbidden(subject)

    def _violation_of(self, subject: str) -> "asyncio.Future[None]":
        return self._forbidden.setdefault(subject.lower(), self._loop.create_future())

    def _forbid(self, subject: str) -> None:
        violation = self._violation_of(subject)
        if not violation.done():
            violation.set_result(None)

    async def _until_done(self, work: Callable[[Client], Awaitable[T]]) -> T:
        while True:
            try:
                result = await work(await self.connection())
                self._trouble, self._warned = None, False
                return result
            except UNREACHABLE_ERRORS as error:
                self._note_trouble(error)
                await asyncio.sleep(RETRY_S)

    def stop(self, within_s: float = LEAVE_S) -> None:
        """Disconnect and end the thread. If that takes too long, the thread ends later by itself."""
        if not self._thread.is_alive():
            return
        deadline = time.monotonic() + within_s
        # In Python 3.10 this is not the builtin TimeoutError.
        with contextlib.suppress(concurrent.futures.TimeoutError, *UNREACHABLE_ERRORS):
            self.submit(self._leave()).result(within_s)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(max(deadline - time.monotonic(), 0.1))

    async def _leave(self) -> None:
        self._leaving = True
        if self._connected is not None and self._connected.done() and not self._connected.exception():
            await self._connected.result().close()
        mine = asyncio.current_task()
        for task in asyncio.all_tasks():
            if task is not mine:
                task.cancel()
        # One round of the loop, in which the cancelled tasks end. asyncio complains about those that are
        # pending when it is closed.
        await asyncio.sleep(0)
