"""The walk from the present state backwards, and the whole story in order."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import msgspec

from det_contracts import codec
from det_contracts.envelope import Recorded
from services.why.history import About, History, about
from services.why.links import causes
from services.why.sentences import words

LONGEST = 60
"""Steps of a chain; a search of many operations has more, and nobody reads them."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a chain or story, in words."""

    position: int
    name: str
    """Of the event, as `searcher.trial.created`; begins with who stated it."""
    at: float
    """Seconds since the epoch."""
    actor: str
    what: str
    reason: str
    about: About
    aside: bool = False
    """It only gave the occasion for the step before it."""
    because: tuple[int, ...] = ()
    """Positions of its own causes, as far as they are told."""


class Told(msgspec.Struct, frozen=True):
    """Steps; `more` when there are earlier ones."""

    steps: Sequence[Step]
    more: bool


def chain(history: History, ends: Iterable[Recorded], longest: int = LONGEST) -> Told:
    """What led to `ends`, newest first, each event once; `history.missing` says what it did without."""
    followed: dict[int, tuple[Recorded, tuple[int, ...]]] = {}
    asides: dict[int, Recorded] = {}
    waiting = {-one.position: one for one in ends}
    heap = sorted(waiting)
    while heap and len(followed) < longest:
        recorded = waiting.pop(heapq.heappop(heap))
        links = causes(history, recorded)
        followed[recorded.position] = (recorded, tuple(link.to.position for link in links))
        for link in links:
            if link.aside:
                asides[link.to.position] = link.to
            elif -link.to.position not in waiting and link.to.position not in followed:
                waiting[-link.to.position] = link.to
                heapq.heappush(heap, -link.to.position)
    # With the names of allocations that only later steps made known.
    steps = [step(history, recorded, because=because) for recorded, because in followed.values()]
    steps += [step(history, one, aside=True) for at, one in asides.items() if at not in followed]
    return Told(sorted(steps, key=lambda s: -s.position), bool(heap))


def step(history: History, recorded: Recorded, *, aside: bool = False, because: tuple[int, ...] = ()) -> Step:
    """An event in words."""
    said = words(recorded.event, history)
    return Step(
        position=recorded.position,
        name=codec.kind_of(recorded.event).name,
        at=recorded.at,
        actor=recorded.actor,
        what=said.what,
        reason=said.reason,
        about=about(recorded.event),
        aside=aside,
        because=because,
    )


def story(history: History, newest: int) -> Told:
    """Everything that was read, the oldest first; at most the `newest` ones."""
    events = history.events
    return Told([step(history, one) for one in events[-newest:]], len(events) > newest)
