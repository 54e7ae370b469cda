"""One attempt to deliver, over HTTP: to an address that may be asked, bounded in size and time."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import urllib3

from services.kit.addresses import Addresses, AddressRefused
from services.kit.guarded_http import pool_manager

WITHIN_S = 8.0
"""Until when an answer must be there."""
CONNECT_S = 3.0
LATE = "the receiver did not answer in time"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt came to."""

    status: int = 0
    problem: str = ""
    """Why it did not arrive; empty: it did. It holds nothing of the answer, and of the address the host."""
    final: bool = False
    """Another attempt would come to the same."""
    took_s: float = 0.0


class Threads:
    """A sender's attempts, each in a thread: one for each webhook, so no receiver waits for another."""

    def __init__(self, sender: Sender, most: int) -> None:
        self._sender = sender
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="webhook")

    async def send(self, url: str, body: bytes, headers: dict[str, str]) -> Result:
        """Make one attempt."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._sender.send, url, body, headers)

    def close(self) -> None:
        """Begin no more; a thread that waits for an answer ends by its own limit."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class Sender:
    """Connections to receivers, which live for one request each."""

    def __init__(self, addresses: Addresses, context: ssl.SSLContext, within_s: float = WITHIN_S) -> None:
        self._addresses = addresses
        self._context = context
        self._within_s = within_s

    def send(self, url: str, body: bytes, headers: Mapping[str, str]) -> Result:
        """POST the body; redirects are not followed, and of an answer its status alone is looked at."""
        began = time.monotonic()
        result = self._sent(url, body, headers)
        took_s = time.monotonic() - began
        if took_s >= self._within_s and result.problem and not result.status:
            # What the limit cut off looks like a connection that ended by itself.
            result = Result(problem=LATE)
        return msgspec.structs.replace(result, took_s=round(took_s, 3))

    def _sent(self, url: str, body: bytes, headers: Mapping[str, str]) -> Result:
        timeout = urllib3.Timeout(connect=CONNECT_S, read=self._within_s)
        pool = pool_manager(self._addresses, timeout, _NEVER, self._within_s, self._context)
        try:
            answer = pool.request(
                "POST", url, body=body, headers=dict(headers), redirect=False, preload_content=False
            )
        except AddressRefused as error:
            return Result(problem=str(error), final=True)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            return Result(problem=_words(error))
        finally:
            pool.clear()
        answer.close()
        return _judged(answer.status)


_NEVER = urllib3.Retry(0, redirect=0, raise_on_redirect=False, raise_on_status=False)


def _judged(status: int) -> Result:
    if 200 <= status < 300:
        return Result(status=status)
    if 300 <= status < 400:
        return Result(status=status, problem=f"the receiver answered {status}: redirects are not followed")
    return Result(status=status, problem=f"the receiver answered {status}")


def _words(error: BaseException) -> str:
    """What went wrong, without the address: its path may be a secret."""
    found: Any = error
    while isinstance(found, urllib3.exceptions.MaxRetryError) and found.reason is not None:
        found = found.reason
    if isinstance(found, urllib3.exceptions.NameResolutionError):
        return "the receiver's name is not known"
    if isinstance(found, urllib3.exceptions.NewConnectionError):
        return "the receiver could not be connected to"
    if isinstance(found, urllib3.exceptions.SSLError | ssl.SSLError):
        return "the receiver's certificate was not accepted, or it does not speak TLS"
    if isinstance(found, urllib3.exceptions.TimeoutError):
        return LATE
    return "the connection to the receiver ended before it had answered"
