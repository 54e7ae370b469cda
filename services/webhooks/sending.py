"""One delivery attempt over HTTP: to a permitted address, limited in size and time."""

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
"""Maximum time until the answer, in seconds."""
CONNECT_S = 3.0
LATE = "the receiver did not answer in time"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an attempt."""

    status: int = 0
    problem: str = ""
    """Why it was not delivered; "" if it was.

    Contains nothing of the answer, and only the host of the address.
    """
    final: bool = False
    """Another attempt would have the same result."""
    took_s: float = 0.0


class ThreadedSender:
    """Runs a sender's attempts in threads, one per webhook, so that no receiver waits for another."""

    def __init__(self, sender: Sender, most: int) -> None:
        self._sender = sender
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="webhook")

    async def send(self, url: str, body: bytes, headers: dict[str, str]) -> Result:
        """Make one attempt."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._sender.send, url, body, headers)

    def close(self) -> None:
        """Start no more attempts. Threads that wait for an answer end at their own time limit."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class Sender:
    """Connections to receivers; each lasts for one request."""

    def __init__(self, addresses: Addresses, context: ssl.SSLContext, within_s: float = WITHIN_S) -> None:
        self._addresses = addresses
        self._context = context
        self._within_s = within_s

    def send(self, url: str, body: bytes, headers: Mapping[str, str]) -> Result:
        """POST the body. Redirects are not followed, and only the status of the answer is used."""
        started = time.monotonic()
        result = self._post(url, body, headers)
        took_s = time.monotonic() - started
        if took_s >= self._within_s and result.problem and not result.status:
            # A connection cut off by the time limit looks like one that was closed.
            result = Result(problem=LATE)
        return msgspec.structs.replace(result, took_s=round(took_s, 3))

    def _post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Result:
        timeout = urllib3.Timeout(connect=CONNECT_S, read=self._within_s)
        pool = pool_manager(self._addresses, timeout, _NEVER, self._within_s, self._context)
        try:
            answer = pool.request(
                "POST", url, body=body, headers=dict(headers), redirect=False, preload_content=False
            )
        except AddressRefused as error:
            return Result(problem=str(error), final=True)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            return Result(problem=_describe_error(error))
        finally:
            pool.clear()
        # Unread: the body may be endless, and nothing of it is shown.
        answer.close()
        return _result_of_status(answer.status)


_NEVER = urllib3.Retry(0, redirect=0, raise_on_redirect=False, raise_on_status=False)


def _result_of_status(status: int) -> Result:
    if 200 <= status < 300:
        return Result(status=status)
    if 300 <= status < 400:
        return Result(status=status, problem=f"the receiver answered {status}: redirects are not followed")
    return Result(status=status, problem=f"the receiver answered {status}")


def _describe_error(error: BaseException) -> str:
    """The error in words, without the address: its path may be a secret."""
    cause: Any = error
    while isinstance(cause, urllib3.exceptions.MaxRetryError) and cause.reason is not None:
        cause = cause.reason
    if isinstance(cause, urllib3.exceptions.NameResolutionError):
        return "the receiver's name is not known"
    if isinstance(cause, urllib3.exceptions.NewConnectionError):
        return "the receiver could not be connected to"
    if isinstance(cause, urllib3.exceptions.SSLError | ssl.SSLError):
        return "the receiver's certificate was not accepted, or it does not speak TLS"
    if isinstance(cause, urllib3.exceptions.TimeoutError):
        return LATE
    return "the connection to the receiver ended before it had answered"
