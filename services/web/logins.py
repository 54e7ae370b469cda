"""How often somebody may try to log in with a wrong password.

Three counts, so that no one attacker keeps others out: of an address, of a name at an address, and of a name
at all addresses from which it has not logged in lately. One address can use up but a part of what a name has.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable

from services.kit.admission import Busy
from services.kit.process_metrics import Reading
from services.web.proxies import site_of

MOST_KEPT = 50_000
"""Of each count; those that were not needed for longest are forgotten first."""
LONGEST_NAME = 128


class Tries:
    """So many at once for each key, and then one more after every so many seconds."""

    def __init__(self, at_once: int, every_s: float) -> None:
        self._room_s, self._every_s = at_once * every_s, every_s
        self._used_until: OrderedDict[str, float] = OrderedDict()

    def wait_s(self, key: str, now: float) -> float:
        """How long until another one may be taken; 0 for at once."""
        return max(0.0, self._used(key, now) + self._every_s - self._room_s - now)

    def take(self, key: str, now: float) -> None:
        """Use one up."""
        self._used_until[key] = self._used(key, now) + self._every_s
        self._used_until.move_to_end(key)
        while len(self._used_until) > MOST_KEPT:
            self._used_until.popitem(last=False)

    def give_back(self, key: str, now: float) -> None:
        """One was not used after all."""
        used = self._used(key, now) - self._every_s
        if used > now:
            self._used_until[key] = used
        else:
            self._used_until.pop(key, None)

    def _used(self, key: str, now: float) -> float:
        return max(self._used_until.get(key, 0.0), now)


class Logins:
    """Wrong passwords, counted."""

    def __init__(self) -> None:
        self._by_address = Tries(24, every_s=3)
        self._by_name = Tries(96, every_s=1)
        self._by_both = Tries(12, every_s=10)
        self._familiar: OrderedDict[str, None] = OrderedDict()
        """Names at addresses from which they have logged in."""
        self.failed = self.limited = 0

    def begin(self, name: str, address: str, now: float) -> Attempt:
        """One more try, which counts until it succeeds; raises `Busy`. `now`: monotonic seconds."""
        return self._begin(Attempt(self, name[:LONGEST_NAME], site_of(address)), now)

    def _begin(self, attempt: Attempt, now: float) -> Attempt:
        wait_s = max(tries.wait_s(key, now) for tries, key in attempt.counts)
        if wait_s:
            self.limited += 1
            raise Busy("exhausted", "too many tries to log in that failed", math.ceil(wait_s))
        for tries, key in attempt.counts:
            tries.take(key, now)
        return attempt

    def begin_elsewhere(self, address: str, now: float) -> Attempt:
        """One more try to sign in with a provider, where only the address is known; raises `Busy`."""
        return self._begin(Attempt(self, "", site_of(address), by_address_alone=True), now)

    def counts_of(self, name: str, site: str, both: str) -> list[tuple[Tries, str]]:
        """What a try of a name from a site counts in."""
        found = [(self._by_address, site), (self._by_both, both)]
        # Whoever tries a name from everywhere must not keep its owner out of their own machine.
        return found if both in self._familiar else [*found, (self._by_name, name)]

    def note_success(self, both: str) -> None:
        """This name belongs to that address, too."""
        self._familiar[both] = None
        self._familiar.move_to_end(both)
        while len(self._familiar) > MOST_KEPT:
            self._familiar.popitem(last=False)

    def readings(self) -> Iterable[Reading]:
        """For operators."""
        yield Reading("logins_failed", "Tries to log in with a wrong password", (), {(): self.failed})
        yield Reading("logins_limited", "Tries to log in that were put off", (), {(): self.limited})


class Attempt:
    """One try to log in."""

    def __init__(self, logins: Logins, name: str, site: str, *, by_address_alone: bool = False) -> None:
        self._logins = logins
        self._both = f"{site} {name}"
        counts = logins.counts_of(name, site, self._both)
        self.counts = counts[:1] if by_address_alone else counts

    def succeeded(self, now: float) -> None:
        """It was the right password."""
        self.forget(now)
        self._logins.note_success(self._both)

    def failed(self) -> None:
        """It was a wrong one."""
        self._logins.failed += 1

    def forget(self, now: float) -> None:
        """The password was not even looked at."""
        for tries, key in self.counts:
            tries.give_back(key, now)
