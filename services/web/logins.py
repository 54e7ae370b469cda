"""Limits how often a wrong password may be tried.

There are three counts, so that no single attacker can lock others out: per address, per name and address, and
per name across all addresses from which it has not recently logged in. One address can use up only part of a
name's allowance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from services.kit.admission import Busy
from services.kit.bounded_dict import BoundedDict
from services.kit.process_metrics import Reading
from services.web.proxies import site_of

MAX_ENTRIES = 50_000
"""Maximum number of entries per count; the least recently used are dropped first."""
MAX_NAME_LENGTH = 128


class TokenBucket:
    """A token bucket per key: a number of tries at once, then one more every few seconds."""

    def __init__(self, at_once: int, every_s: float) -> None:
        self._capacity_s, self._every_s = at_once * every_s, every_s
        self._used_until: BoundedDict[str, float] = BoundedDict(MAX_ENTRIES)

    def wait_s(self, key: str, now: float) -> float:
        """Return the seconds until another try is allowed; 0 if it is allowed now."""
        return max(0.0, self._used(key, now) + self._every_s - self._capacity_s - now)

    def consume(self, key: str, now: float) -> None:
        """Use up one try."""
        self._used_until[key] = self._used(key, now) + self._every_s

    def refund(self, key: str, now: float) -> None:
        """Return an unused try."""
        used = self._used(key, now) - self._every_s
        if used > now:
            self._used_until[key] = used
        else:
            self._used_until.pop(key, None)

    def _used(self, key: str, now: float) -> float:
        return max(self._used_until.get(key, 0.0), now)


class LoginLimiter:
    """Counts wrong passwords."""

    def __init__(self) -> None:
        self._by_address = TokenBucket(24, every_s=3)
        self._by_name = TokenBucket(96, every_s=1)
        self._by_pair = TokenBucket(12, every_s=10)
        self._known_pairs: BoundedDict[str, None] = BoundedDict(MAX_ENTRIES)
        """Combinations of name and address that have logged in before."""
        self.failed = self.limited = 0

    def start_attempt(self, name: str, address: str, now: float) -> Attempt:
        """Begin a try, which counts unless it succeeds. `now` is in monotonic seconds. Raises `Busy`."""
        return self._start(Attempt(self, name[:MAX_NAME_LENGTH], site_of(address)), now)

    def _start(self, attempt: Attempt, now: float) -> Attempt:
        # Looked at in all counts before any is used up, so that a refused try costs nothing.
        wait_s = max(tries.wait_s(key, now) for tries, key in attempt.counts)
        if wait_s:
            self.limited += 1
            raise Busy("exhausted", "too many failed login attempts", math.ceil(wait_s))
        for tries, key in attempt.counts:
            # Counted before the password is checked: many tries at once would otherwise all pass.
            tries.consume(key, now)
        return attempt

    def start_external_attempt(self, address: str, now: float) -> Attempt:
        """Begin a sign-in with an identity provider, where only the address is known. Raises `Busy`."""
        return self._start(Attempt(self, "", site_of(address), by_address_alone=True), now)

    def counts_of(self, name: str, site: str, pair: str) -> list[tuple[TokenBucket, str]]:
        """Return the counts that apply to a name from a site."""
        counts = [(self._by_address, site), (self._by_pair, pair)]
        # Attackers that try a name from everywhere must not lock its owner out of their own machine.
        return counts if pair in self._known_pairs else [*counts, (self._by_name, name)]

    def record_success(self, pair: str) -> None:
        """Remember that this name has logged in from that address."""
        self._known_pairs[pair] = None

    def readings(self) -> Iterable[Reading]:
        """Prometheus readings."""
        yield Reading("logins_failed", "Login attempts with a wrong password", (), {(): self.failed})
        yield Reading("logins_limited", "Login attempts that were delayed", (), {(): self.limited})


class Attempt:
    """One login attempt."""

    def __init__(self, logins: LoginLimiter, name: str, site: str, *, by_address_alone: bool = False) -> None:
        self._logins = logins
        self._pair = f"{site} {name}"
        counts = logins.counts_of(name, site, self._pair)
        self.counts = counts[:1] if by_address_alone else counts

    def succeeded(self, now: float) -> None:
        """Record that the password was right."""
        self.undo(now)
        self._logins.record_success(self._pair)

    def failed(self) -> None:
        """Record that the password was wrong."""
        self._logins.failed += 1

    def undo(self, now: float) -> None:
        """Undo the attempt, because the password was not even checked."""
        for tries, key in self.counts:
            tries.refund(key, now)
