"""Walks back from the present state to its causes, or tells the whole story in order."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import msgspec

from det_contracts import codec
from det_contracts.envelope import Recorded
from services.why.event_descriptions import describe
from services.why.history import About, History, about
from services.why.links import causes

MAX_STEPS = 60
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


class Explanation(msgspec.Struct, frozen=True):
    """Steps, and whether there are earlier ones."""

    steps: Sequence[Step]
    more: bool


def chain(history: History, start_events: Iterable[Recorded], max_steps: int = MAX_STEPS) -> Explanation:
    """The causes of `start_events`, newest first, each event once.

    `history.missing` holds what was not available.
    """
    followed: dict[int, tuple[Recorded, tuple[int, ...]]] = {}
    asides: dict[int, Recorded] = {}
    # A heap with the newest first: causes are always older, so no event is reached again after it has been
    # taken out.
    pending = {-event.position: event for event in start_events}
    heap = sorted(pending)
    while heap and len(followed) < max_steps:
        recorded = pending.pop(heapq.heappop(heap))
        links = causes(history, recorded)
        followed[recorded.position] = (recorded, tuple(link.to.position for link in links))
        for link in links:
            if link.aside:
                asides[link.to.position] = link.to
            elif -link.to.position not in pending and link.to.position not in followed:
                pending[-link.to.position] = link.to
                heapq.heappush(heap, -link.to.position)
    # Formatted last, because later steps may reveal which trial an allocation belongs to.
    steps = [step(history, recorded, because=because) for recorded, because in followed.values()]
    steps += [step(history, event, aside=True) for at, event in asides.items() if at not in followed]
    return Explanation(sorted(steps, key=lambda s: -s.position), bool(heap))


def step(history: History, recorded: Recorded, *, aside: bool = False, because: tuple[int, ...] = ()) -> Step:
    """Convert an event to a step."""
    description = describe(recorded.event, history)
    return Step(
        position=recorded.position,
        name=codec.kind_of(recorded.event).name,
        at=recorded.at,
        actor=recorded.actor,
        what=description.what,
        reason=description.reason,
        about=about(recorded.event),
        aside=aside,
        because=because,
    )


def newest_steps(history: History, newest: int) -> Explanation:
    """Everything that was read, oldest first, limited to the `newest` events."""
    events = history.events
    return Explanation([step(history, recorded) for recorded in events[-newest:]], len(events) > newest)
