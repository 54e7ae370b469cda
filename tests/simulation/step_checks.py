"""What a simulated cluster checks at each message that its log takes, and of its services in between."""

import asyncio

import msgspec

from det_contracts import codec, subjects
from det_contracts.envelope import Unknown
from det_contracts.events import Decision, scheduler, searcher, worker
from det_contracts.problems import Refused
from det_contracts.queries import (
    Checkpoints,
    ClusterState,
    Fits,
    Jobs,
    Pools,
    Provisioning,
    SearchProgress,
    SearchState,
    Waiting,
)
from services.kit.rules import dump, every_key
from tests.simulation import calls, invariants, searches
from tests.simulation.facts import NEVER, Seen
from tests.simulation.fake_database import states_differ, whole
from tests.simulation.invariants import Stated
from tests.simulation.violation import Violation

QUERIES = [
    SearchProgress([1, 2, 99]),
    SearchState(1),
    Waiting(),
    Waiting(1),
    Jobs(),
    Pools(),
    Provisioning(),
    Fits(pool="default", slots=4),
    ClusterState(),
    Checkpoints(experiment_id=1),
]
HOST_EVENTS = (worker.WorkerRegistered, worker.WorkerLeft, scheduler.WorkerLost)


class StepChecks:
    """Folds each message as it is stored, checks it, and compares services with that fold."""

    def next_stored(self):
        """A future that is done when the next message is stored."""
        self._watched = self._watched or asyncio.get_running_loop().create_future()
        return self._watched

    def _on_stored(self, stored):
        if self._watched is not None:
            self._watched.set_result(None)
            self._watched = None
        if self.failure is not None:
            return
        try:
            self._step(stored)
        except Exception as error:
            self.fail(error)

    def _step(self, stored):
        stream = stored.subject.partition(".")[0].upper()
        if stream in (subjects.ORDERS, subjects.WITNESS):
            return
        if stream != subjects.CONTROL:
            report = self.rules["metrics"].decode[stream](stored, stream)
            self._fold("metrics", report)
            if stream == subjects.REPORTS:
                self.ledger.reports.take(report.event.batch)
            return
        recorded = self.reading.event(stored)
        self.steps += 1
        if type(recorded.event) is Unknown and recorded.event.name in self.newer | {codec.DAMAGED}:
            return
        invariants.check_before(self.ledger, recorded.event, self._stated(stored, recorded))
        if self.promptness is not None:
            self.promptness.look(self, recorded)
        *_, knowledge = self._batch
        calls.check_cause(self.ledger, recorded, asyncio.get_running_loop().time(), knowledge.through)
        moved = {owner: self._fold(owner, recorded) for owner in self.rules}
        self.ledger.take(recorded)
        self.registers.take(recorded, len(self.disk.streams[subjects.LOGS]))
        if self.promptness is not None:
            for owner, keys in moved.items():
                self.promptness.moved(owner, keys, recorded.position)
        if isinstance(recorded.event, HOST_EVENTS):
            self._check_host(recorded.event)
        for kind, id in moved["searcher"]:
            if kind == "searches" and id in self.truth["searcher"].searches:
                self._check_search(id, recorded.event)

    def _fold(self, owner, recorded):
        if self.poison and self.poison.has(owner, recorded):
            return ()
        try:
            return tuple(self.rules[owner].evolve(self.truth[owner], recorded))
        except Exception as error:
            raise Violation("events can be folded", f"{owner}: {error!r}", recorded.event) from error

    def _stated(self, stored, recorded):
        event = recorded.event
        owner, left, knowledge = self._batch
        if type(event) is Decision:
            if left:
                raise Violation("batches are whole", f"{left} events of {owner} are missing", event)
            knowledge = Seen(event.seen)
            self._batch = (event.owner, event.count, knowledge)
            batch = event.owner
        elif left:
            if recorded.actor.startswith("user:") and knowledge.batch == NEVER:
                # What commands say is known to the commands after them, and to what they call for.
                knowledge = Seen(knowledge.through, stored.position)
            self._batch, batch = (owner, left - 1, knowledge), owner
        else:
            batch, knowledge = "", Seen(0)
        name = codec.kind_of(event).name
        return Stated(
            name,
            recorded.actor,
            stored.subject,
            stored.position,
            recorded.cause,
            batch,
            knowledge.through,
            knowledge,
            False,
            recorded.witness,
        )

    def _check_search(self, id, event):
        for check in searches.CHECKS:
            wrong = check(self.ledger, self.truth["searcher"], id)
            if wrong:
                raise Violation(check.__name__, wrong, searcher.ExperimentDeleting(id, ""))

    def _check_host(self, event):
        """The scheduler and the gateway have a worker for here, or gone, as the ledger has."""
        id, host = event.worker_id, self.ledger.workers.get(event.worker_id)
        right = (host.presence, host.session) if host is not None else None
        stored_worker = self.truth["scheduler"].workers.get(id)
        placed_on = (stored_worker.presence, stored_worker.session) if stored_worker is not None else None
        is_here = host is not None and host.presence == "here"
        is_shown = id in self.truth["gateway"].workers if "gateway" in self.truth else is_here
        if placed_on != right or is_shown != is_here:
            shown = "shown" if is_shown else "not shown"
            what = f"worker {id} is {right}; for the scheduler it is {placed_on}, and it is {shown}"
            raise Violation("workers are as the log says", what, event)

    def check_records(self, owner):
        """A state's indexes follow from its records: a snapshot reaches the same decisions."""
        rules, live = self.rules[owner], self.truth[owner]
        loaded = self._copies[owner].of(live)
        for key in every_key(live):
            live_decisions, loaded_decisions = list(rules.react(live, key)), list(rules.react(loaded, key))
            if live_decisions != loaded_decisions:
                raise Violation(
                    "a snapshot decides the same", f"{key}: live {live_decisions}, loaded {loaded_decisions}"
                )

    def check_answers(self):
        """Every question is answered, and every waiting job has a reason."""
        for rules in self.rules.values():
            for query in QUERIES:
                if type(query) in rules.answers:
                    self._answer(rules, query)
        why = self.rules["scheduler"].answers[Waiting](self.truth["scheduler"], Waiting())
        silent = [id for id, sentence in why.items() if not sentence]
        if silent:
            raise Violation("who waits is told why", f"{silent} are told nothing")

    def _answer(self, rules, query):
        try:
            msgspec.json.encode(rules.answers[type(query)](self.truth[rules.owner], query))
        except Refused:
            pass
        except Exception as error:
            raise Violation("questions are answered", f"{query}: {error!r}") from error

    def compare(self, replica):
        """A caught-up replica holds what the fold of the log holds."""
        if replica.rules.owner not in self.rules or replica.rules.owner == self.poison.folded:
            return True
        if not replica.up or any(
            at != len(self.disk.streams[stream]) for stream, at in replica.runner.positions.items()
        ):
            return False
        state = whole(replica.rules, replica.runner.state, replica.shelf, replica.runner.pager)
        if states_differ(state, self.truth[replica.rules.owner]):
            actual, right = dump(state), dump(self.truth[replica.rules.owner])
            what = next(
                f"{kind} {id}: {actual[kind].get(id)} is not {right[kind].get(id)}"
                for kind in right
                for id in {**actual[kind], **right[kind]}
                if actual[kind].get(id) != right[kind].get(id)
            )
            self.fail(Violation("state is the fold of the log", f"{replica.name}: {what}"))
        return True
