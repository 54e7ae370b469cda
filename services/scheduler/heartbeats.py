"""Listens for signs of life of workers and reports those that fell silent.

Absence is the one fact that nobody states, so this watch, outside the pure rules, turns it into a
command; what follows from it is decided by the log alone.

Silence counts only while somebody listened (`services/kit/listening.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from nats.aio.msg import Msg

from det_contracts import subjects
from services.kit.listening import Listening, report_while_leading
from services.kit.parts import Parts
from services.kit.process_metrics import Reading
from services.kit.since_boot import since_boot
from services.scheduler.commands import GiveUp, ReportSilence
from services.scheduler.domain import State

RECONNECT_WAIT_S = 25.0
"""Silence after which a worker counts as lost: longer than a leader change of the log (15 s)."""
LOOK_EVERY_S = 1.0
GRACE_S = 5.0
"""What a host may take to end what it runs, once it knows that it has to."""
PATIENCE_S = 5.0
"""A report that was not ruled on by then is about the past; so is a fold that has not come so far by then."""


class Watch:
    """When each session of a worker was last heard of, by this process's own clock."""

    def __init__(self, patience_s: float, told: Callable[[str], bool] = lambda _: True) -> None:
        """`told` says of a worker whether its orders say all that is folded of it."""
        self._patience_s = patience_s
        self._told = told
        self._heard: dict[str, dict[str, float]] = {}
        """By worker and session: another process that calls itself by the worker's name is no sign of it."""
        self._met: dict[str, tuple[str, float]] = {}
        """The session of each worker, and when it was seen first: a registration is a sign of life, too."""
        self._lost_since: dict[tuple[str, str], float] = {}
        """Since when each part of an allocation, by worker, is lost and not over, and its host can know
        it."""
        self._listening = Listening(patience_s / 2, since_boot())
        self._unknown_since: dict[tuple[str, str], float] = {}
        """Since when a session is heard of a worker that nobody knows."""

    def begin_again(self) -> None:
        """Nobody listened until now: whoever was not heard has not been silent."""
        self._listening.begin_again(since_boot())

    async def on_beat(self, message: Msg) -> None:
        """A heartbeat: `heartbeat.<worker id>`, in it the session."""
        worker_id = message.subject.rpartition(".")[2]
        self._heard.setdefault(worker_id, {})[message.data.decode(errors="replace")] = since_boot()

    def readings(self, state: State) -> Iterable[Reading]:
        """How long ago each worker that ought to be here gave a sign of life."""
        now = since_boot()
        here = [(one.id, one.session) for one in state.workers.values() if one.presence == "here"]
        heard = {id: self._heard.get(id, {}).get(session) for id, session in here}
        ages = {(id,): now - at for id, at in heard.items() if at is not None}
        yield Reading("heartbeat_age_seconds", "Time since the last heartbeat", ("worker",), ages)

    def silent(self, state: State) -> list[ReportSilence]:
        """Workers that ought to be here and are not heard of; asked at each look at which all was heard.

        Nobody is silent before this watch itself has listened for as long as its patience, without a gap.
        """
        now = since_boot()
        self._listening.look(now)
        self._forget_unknown(state, now)
        reports = []
        for worker in state.workers.values():
            self._forget_others(worker.id, worker.session, now)
            heard = self._heard.get(worker.id, {}).get(worker.session, 0.0)
            quiet = now - max(heard, self._met[worker.id][1], self._listening.since)
            if worker.presence == "here" and quiet > self._patience_s:
                reports.append(ReportSilence(worker.id, worker.session, quiet))
        return reports

    def given_up(self, state: State) -> list[GiveUp]:
        """Lost parts of allocations that their hosts must have ended by now, each by its own clock."""
        now = since_boot()
        lost = {
            (id, member.worker_id): state.allocations[id].fence_s
            for id in sorted(state.places.out_of_touch)
            for member in state.allocations[id].members
            if member.lost and not member.over and self._host_can_know(id, member.worker_id)
        }
        self._lost_since = {part: self._lost_since.get(part, now) for part in lost}
        waited = {part: now - max(at, self._listening.since) for part, at in self._lost_since.items()}
        return [
            GiveUp(*part, waited[part]) for part, fence_s in lost.items() if waited[part] > fence_s + GRACE_S
        ]

    def unknown(self, state: State) -> list[tuple[str, str]]:
        """Workers that live for longer than registering takes, and never registered; with their sessions."""
        now = since_boot()
        heard = {
            (id, session): self._unknown_since.get((id, session), now)
            for id in self._heard.keys() - state.workers.keys()
            for session, at in self._heard[id].items()
            if now - at < self._patience_s / 2
        }
        self._unknown_since = heard
        begun = self._listening.since
        return sorted(one for one, at in heard.items() if now - max(at, begun) > self._patience_s)

    def _host_can_know(self, allocation_id: str, worker_id: str) -> bool:
        """Before that it may be in touch, and let run what it has not been told to end."""
        return (allocation_id, worker_id) in self._lost_since or self._told(worker_id)

    def _forget_unknown(self, state: State, now: float) -> None:
        """Workers that are forgotten, and whoever was heard and never registered."""
        for id in self._met.keys() - state.workers.keys():
            del self._met[id]
        for id in self._heard.keys() - state.workers.keys():
            if all(now - at > self._patience_s for at in self._heard[id].values()):
                del self._heard[id]

    def _forget_others(self, worker_id: str, session: str, now: float) -> None:
        """Sessions that nobody knows by now; one that has just begun may be heard before it is read of."""
        if self._met.get(worker_id, ("", 0.0))[0] != session:
            self._met[worker_id] = session, now
        heard = self._heard.get(worker_id, {})
        for other in [s for s, at in heard.items() if s != session and now - at > self._patience_s]:
            del heard[other]


async def watch(
    parts: Parts,
    patience_s: float,
    told: Callable[[str], bool],
    call_back: Callable[[str, str], None],
) -> None:
    """Report silent workers for as long as this replica leads; `told` as for `Watch`.

    `call_back` is called with workers that live and are not known, and their session.
    """
    listening = Watch(patience_s, told)
    parts.measures.read(lambda: listening.readings(parts.runner.state))
    await parts.connection.subscribe(subjects.heartbeat("*"), cb=listening.on_beat)

    def reports(state: State) -> Iterable[tuple[str, ReportSilence | GiveUp]]:
        for stranger in listening.unknown(state):
            call_back(*stranger)
        for silence in listening.silent(state):
            yield f"silence-{silence.session}", silence
        for part in listening.given_up(state):
            yield f"silence-{part.allocation_id}", part

    await report_while_leading(
        parts,
        every_s=LOOK_EVERY_S,
        within_s=PATIENCE_S,
        begin_again=lambda _: listening.begin_again(),
        reports=reports,
    )
