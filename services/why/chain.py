"""Walks back from the present state to its causes, or tells the whole story in order."""

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
"""Maximum steps of a chain. A search with many operations has more, but nobody reads them."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a chain or story, as a sentence."""

    position: int
    name: str
    """The event's name, such as `searcher.trial.created`. It begins with the event's owner."""
    at: float
    """Seconds since the epoch."""
    actor: str
    what: str
    reason: str
    about: About
    aside: bool = False
    """Whether the event only triggered the step after it, and is not itself explained."""
    because: tuple[int, ...] = ()
    """Positions of this step's causes that are part of the chain."""


class Told(msgspec.Struct, frozen=True):
    """Steps, and whether there are earlier ones."""

    steps: Sequence[Step]
    more: bool


def chain(history: History, ends: Iterable[Recorded], longest: int = LONGEST) -> Told:
    """The causes of `ends`, newest first, each event once. `history.missing` holds what was not available."""
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
    # Formatted last, because later steps may reveal which trial an allocation belongs to.
    steps = [step(history, recorded, because=because) for recorded, because in followed.values()]
    steps += [step(history, one, aside=True) for at, one in asides.items() if at not in followed]
    return Told(sorted(steps, key=lambda s: -s.position), bool(heap))


def step(history: History, recorded: Recorded, *, aside: bool = False, because: tuple[int, ...] = ()) -> Step:
    """Convert an event to a step."""
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
    """Everything that was read, oldest first, limited to the `newest` events."""
    events = history.events
    return Told([step(history, one) for one in events[-newest:]], len(events) > newest)
