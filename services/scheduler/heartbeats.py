"""Listens for workers' heartbeats and reports workers that have gone silent.

Nothing reports an absence, so this monitor, which is not part of the pure rules, turns it into a command.
What follows from the command is decided by the log alone.

Silence counts only while this process was listening (`services/kit/listening.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from nats.aio.msg import Msg

from det_contracts import subjects
from det_contracts.limits import NAME_CHARACTERS
from services.kit.bounded_dict import BoundedDict
from services.kit.listening import ListeningPeriod, report_while_leading
from services.kit.parts import Parts
from services.kit.process_metrics import Reading
from services.kit.since_boot import since_boot
from services.scheduler.commands import GiveUp, ReportSilence
from services.scheduler.domain import State

RECONNECT_WAIT_S = 25.0
"""Silence after which a worker counts as lost, in seconds: longer than a leader change of the log (15 s)."""
POLL_EVERY_S = 1.0
GRACE_S = 5.0
"""Time that a host may need to end what it runs after it has learned that it must, in seconds."""
MAX_SESSION_BYTES = 4 * NAME_CHARACTERS
"""What the longest session that a worker may register with takes."""
MAX_SESSIONS = 2_000
"""Sessions remembered per worker: as many heartbeats as one may send between two of another process."""
REPORT_TIMEOUT_S = 5.0
"""A report that was not ruled on within this time is outdated, as is a fold further behind, in seconds."""


class HeartbeatMonitor:
    """When each session of a worker was last heard, by this process's own clock."""

    def __init__(self, patience_s: float, has_current_orders: Callable[[str], bool] = lambda _: True) -> None:
        """Start with nothing heard.

        `has_current_orders` returns whether a worker's orders reflect everything folded about it.
        """
        self._patience_s = patience_s
        self._has_current_orders = has_current_orders
        self._last_heartbeats: dict[str, dict[str, float]] = {}
        """Worker -> session -> last heartbeat.

        A heartbeat of another process with the same worker id does not count.
        """
        self._first_seen: dict[str, tuple[str, float]] = {}
        """Worker -> its session and when it was first seen. A registration counts as a sign of life, too."""
        self._lost_since: dict[tuple[str, str], float] = {}
        """(allocation, worker) -> since when the part is lost, not over, and its host can know that."""
        self._listening = ListeningPeriod(patience_s / 2, since_boot())
        self._unregistered_since: dict[tuple[str, str], float] = {}
        """(worker, session) -> since when an unregistered worker has been heard."""

    def restart(self, state: State) -> None:
        """Restart the measurement after a time without listening: nobody was silent during it."""
        now = since_boot()
        self._listening.restart(now)
        self._forget_unknown(state, now)
        for worker in state.workers.values():
            self._drop_old_sessions(worker.id, worker.session, now)

    async def on_heartbeat(self, message: Msg) -> None:
        """Handle a heartbeat: subject `heartbeat.<worker id>`, payload the session."""
        worker_id = message.subject.rpartition(".")[2]
        # The id comes from the subject, which the broker checks. The body may hold anything, so a session
        # counts only if it is the registered one.
        if len(message.data) <= MAX_SESSION_BYTES:
            sessions = self._last_heartbeats.setdefault(worker_id, BoundedDict[str, float](MAX_SESSIONS))
            sessions[message.data.decode(errors="replace")] = since_boot()

    def readings(self, state: State) -> Iterable[Reading]:
        """The time since the last heartbeat of each worker that should be here."""
        now = since_boot()
        here = [(worker.id, worker.session) for worker in state.workers.values() if worker.presence == "here"]
        newest = {id: self._last_heartbeats.get(id, {}).get(session) for id, session in here}
        ages = {(id,): now - at for id, at in newest.items() if at is not None}
        yield Reading("heartbeat_age_seconds", "Time since the last heartbeat", ("worker",), ages)

    def silence_reports(self, state: State) -> list[ReportSilence]:
        """Return reports on workers that should be here and are silent.

        Call this when no heartbeat is pending. No worker counts as silent before this monitor has listened
        without a gap for as long as its patience.
        """
        now = since_boot()
        # A gap between two checks means that this process did not run, so that heartbeats may have been
        # missed.
        self._listening.record_check(now)
        self._forget_unknown(state, now)
        reports = []
        for worker in state.workers.values():
            self._drop_old_sessions(worker.id, worker.session, now)
            last_at = self._last_heartbeats.get(worker.id, {}).get(worker.session, 0.0)
            # A worker that has just registered need not have sent a heartbeat, and a new leader has heard
            # none.
            quiet = now - max(last_at, self._first_seen[worker.id][1], self._listening.since)
            if worker.presence == "here" and quiet > self._patience_s:
                reports.append(ReportSilence(worker.id, worker.session, quiet))
        return reports

    def give_up_commands(self, state: State) -> list[GiveUp]:
        """Lost parts of allocations that their hosts, by their own clocks, must have ended by now."""
        now = since_boot()
        lost = {
            (id, member.worker_id): state.allocations[id].fence_s
            for id in sorted(state.occupancy.unconfirmed_lost)
            for member in state.allocations[id].members
            if member.lost and not member.over and self._host_can_know(id, member.worker_id)
        }
        self._lost_since = {part: self._lost_since.get(part, now) for part in lost}
        waited = {part: now - max(at, self._listening.since) for part, at in self._lost_since.items()}
        return [
            GiveUp(*part, waited[part]) for part, fence_s in lost.items() if waited[part] > fence_s + GRACE_S
        ]

    def unregistered_workers(self, state: State) -> list[tuple[str, str]]:
        """Workers that never registered although they send heartbeats for long enough; and their sessions."""
        now = since_boot()
        since = {
            (id, session): self._unregistered_since.get((id, session), now)
            for id in self._last_heartbeats.keys() - state.workers.keys()
            for session, at in self._last_heartbeats[id].items()
            # Only those that are alive now: what a worker that ended sent earlier needs no registration.
            if now - at < self._patience_s / 2
        }
        self._unregistered_since = since
        listening_since = self._listening.since
        return sorted(
            worker_session
            for worker_session, at in since.items()
            if now - max(at, listening_since) > self._patience_s
        )

    def _host_can_know(self, allocation_id: str, worker_id: str) -> bool:
        """Whether the host can know that the part is lost.

        Until then it may be in contact and keep running it.
        """
        return (allocation_id, worker_id) in self._lost_since or self._has_current_orders(worker_id)

    def _forget_unknown(self, state: State, now: float) -> None:
        """Drop what is known of forgotten workers and of silent ones that never registered."""
        for id in self._first_seen.keys() - state.workers.keys():
            del self._first_seen[id]
        for id in self._last_heartbeats.keys() - state.workers.keys():
            if all(now - at > self._patience_s for at in self._last_heartbeats[id].values()):
                del self._last_heartbeats[id]

    def _drop_old_sessions(self, worker_id: str, session: str, now: float) -> None:
        """Drop outdated sessions.

        A session that has just begun may be heard before its registration is folded.
        """
        if self._first_seen.get(worker_id, ("", 0.0))[0] != session:
            self._first_seen[worker_id] = session, now
        sessions = self._last_heartbeats.get(worker_id, {})
        for other in [s for s, at in sessions.items() if s != session and now - at > self._patience_s]:
            del sessions[other]


async def monitor_heartbeats(
    parts: Parts,
    patience_s: float,
    has_current_orders: Callable[[str], bool],
    request_registration: Callable[[str, str], None],
) -> None:
    """Report silent workers while this replica leads. `has_current_orders` is as for `HeartbeatMonitor`.

    `request_registration` is called with each live worker that is not registered, and its session.
    """
    listening = HeartbeatMonitor(patience_s, has_current_orders)
    parts.measures.register(lambda: listening.readings(parts.runner.state))
    await parts.stranger_connection.subscribe(subjects.heartbeat("*"), cb=listening.on_heartbeat)

    def reports(state: State) -> Iterable[tuple[str, ReportSilence | GiveUp]]:
        for unregistered in listening.unregistered_workers(state):
            request_registration(*unregistered)
        for silence in listening.silence_reports(state):
            # The same id each second: whatever is decided twice has the same cause in the log.
            yield f"silence-{silence.session}", silence
        for part in listening.give_up_commands(state):
            yield f"silence-{part.allocation_id}", part

    await report_while_leading(
        parts,
        every_s=POLL_EVERY_S,
        within_s=REPORT_TIMEOUT_S,
        restart=listening.restart,
        reports=reports,
    )
