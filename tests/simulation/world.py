"""The whole cluster in one thread: its parts, what happens at each step, and when it is over."""

import asyncio
from contextlib import ExitStack
from types import SimpleNamespace
from unittest import mock

import msgspec

from det_contracts import codec, script_queries, subjects
from det_contracts.envelope import Unknown
from det_contracts.events import Decision, searcher
from det_contracts.problems import Refused, invalid, unavailable
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
from services.checkpoints.app import RULES as CHECKPOINTS
from services.intake import relay
from services.kit import decider, listening, pager, runner, saved_portions, snapshot_store, suspension
from services.kit.rules import Call, dump, every_key
from services.metrics import settling
from services.metrics.app import RULES as METRICS
from services.provisioner import reconciliation
from services.scheduler import heartbeats, orders
from services.scheduler.app import RULES as SCHEDULER
from services.scheduler.script_answers import holder_answer
from services.searcher.app import RULES as SEARCHER
from tests.simulation import calls, invariants, searches
from tests.simulation.broker import Disk
from tests.simulation.engine import LyingEngine
from tests.simulation.facts import NEVER, Seen
from tests.simulation.fake_database import Copies, FakeDatabase, FakeSnapshot, states_differ, whole
from tests.simulation.gateway import RULES as GATEWAY
from tests.simulation.gateway import Gateway
from tests.simulation.intake import Intake
from tests.simulation.invariants import Stated
from tests.simulation.ledger import Ledger
from tests.simulation.limits import limits_in_force
from tests.simulation.loop import run
from tests.simulation.poison import Poison
from tests.simulation.provisioner import Provisioner
from tests.simulation.registers import Registers
from tests.simulation.replica import NO_METRICS, Replica
from tests.simulation.script import PROGRAMS
from tests.simulation.shared_decoder import SharedDecoder
from tests.simulation.story import Story
from tests.simulation.violation import Violation
from tests.simulation.worker import Worker
from worker import fact_outbox, last_contact, registration

EPOCH = 1_700_000_000.0
PATIENCE_S = 10.0
POLL_EVERY_S = 4.0
ROOM = 6
"""Keep few inactive records in memory, so that most of what is looked up again comes from the shelf."""
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


class World:
    """One seed's cluster."""

    epoch = EPOCH

    def __init__(self, plan):
        self.plan = self.plan_now = plan
        self.chance = plan.chance("world")
        self.story = Story()
        self.ledger = Ledger()
        self.disk = Disk(self._on_stored)
        self.failure = None
        self.steps = 0
        self.workers = {}
        self.processes = {}
        self.programs = PROGRAMS
        self.chiefs = {}
        self.promptness = None
        """Counts how long decisions wait, if a test wants that."""
        self.acknowledged = {}
        """Per owner, the last position returned by an answer."""
        self.newer = set()
        """Names of events that a newer version writes."""
        self._ids = 0
        self._watched = None
        self._batch = ("", 0, Seen(0))
        self._failed = asyncio.get_running_loop().create_future()
        self.reading = SharedDecoder()
        all_rules = (SEARCHER, SCHEDULER, CHECKPOINTS, METRICS, *[GATEWAY] * (plan.gateways > 0))
        self.rules = {rules.owner: self.reading.shared(rules) for rules in all_rules}
        self.truth = {owner: rules.state() for owner, rules in self.rules.items()}
        self._copies = {owner: Copies(rules.state) for owner, rules in self.rules.items()}
        self.registers = Registers()
        self.poison = Poison()
        self.engine = LyingEngine(self) if plan.grows else None
        self.provisioners = [Provisioner(self) for _ in range(2 * plan.grows)]
        """Two of them: one may wrongly believe that it leads."""
        self.replicas = [replica for owner in self.owners for replica in self._replicas(owner)]

    @property
    def owners(self):
        """All services: those with rules, and the intake."""
        return [*self.rules, subjects.INTAKE]

    def _replicas(self, owner):
        if owner == subjects.INTAKE:
            return [Intake(self, number) for number in range(self.plan.intakes)]
        if owner == "gateway":
            # Each has a database of its own, or all of them share one.
            one = FakeDatabase(self.chance)
            return [
                Gateway(self, number, one if self.plan.share else FakeDatabase(self.chance))
                for number in range(self.plan.gateways)
            ]
        shelf, count = FakeDatabase(self.chance), 1 + (self.chance.random() < 0.5)
        return [Replica(self, self.rules[owner], number, shelf) for number in range(count)]

    # -- small things that all use

    def clock(self):
        return EPOCH + asyncio.get_running_loop().time()

    def new_id(self):
        self._ids += 1
        return f"b{self._ids:07d}"

    def tell(self, kind, text):
        self.story.tell(self.ledger.position, asyncio.get_running_loop().time(), kind, text)

    def fault(self, kind, text):
        self.ledger.count("faults")
        self.tell(kind, text)

    def fail(self, error):
        if self.failure is None:
            self.failure = error
            if not self._failed.done():
                self._failed.set_result(None)

    def of(self, owner):
        return [r for r in self.replicas if r.rules.owner == owner]

    def databases(self, owner):
        """The databases of a service."""
        return list({id(one.shelf): one.shelf for one in self.of(owner) if owner in self.rules}.values())

    def answering(self, owner):
        return [r for r in self.of(owner) if r.answers]

    async def send_heartbeat(self, worker_id, session):
        for replica in self.of("scheduler"):
            replica.on_heartbeat(worker_id, session)

    async def ask(self, owner, command):
        """Ask like the gateway: (position, value), or `Refused` as unavailable after a while."""
        if (size := len(msgspec.json.encode(command))) > self.plan.limits.stated:
            raise invalid(f"the request is too large: {size:,} bytes")
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        while not (there := self.answering(owner)):
            if asyncio.get_running_loop().time() > deadline:
                raise unavailable(f"no {owner}")
            await asyncio.sleep(0.5)
        chosen = self.chance.choice(there)
        call = Call(f"call-{self.new_id()}", chosen.clock())
        before = self.acknowledged.get(owner, 0)
        work = chosen.process.run(chosen.rule(command, call, PATIENCE_S))
        work.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.wait([work], timeout=PATIENCE_S)
        if not work.done():
            self.ledger.given_up[call.id] = asyncio.get_running_loop().time()
            raise unavailable(f"{owner} does not answer")
        try:
            position, value = work.result()
        except Refused as refusal:
            self._check_refused(command, refusal, before)
            raise
        self._check_acknowledged(command, position, value)
        if position < before:
            told = f"{command} was answered at {position}, {owner} had answered others at {before} before"
            self.fail(Violation("answers follow those before them", told))
        self.acknowledged[owner] = max(position, self.acknowledged.get(owner, 0))
        return position, value

    async def news(self, owner, trial_id, ask):
        """Ask like a script: the news, or None after a while or if the answer got lost."""
        there = [one for one in self.of(owner) if one.up and one.runner.ready.is_set()]
        if not there:
            await asyncio.sleep(0.5)
            return None
        work = self.chance.choice(there).tell(trial_id, ask)
        await asyncio.wait([work], timeout=script_queries.WAIT_S + 5.0)
        lost = self.chance.random() < self.plan_now.losses
        if lost or not work.done() or work.cancelled():
            await asyncio.sleep(0.5)
            return None
        await asyncio.sleep(0.05 * self.chance.random())
        return work.result()

    async def holder(self, worker_id):
        """Ask the scheduler, like a worker, who has its id; None if nobody answers."""
        there = [one for one in self.of("scheduler") if one.up and one.runner.ready.is_set()]
        await asyncio.sleep(0.05 * self.chance.random())
        # A process that has ended meanwhile does not answer.
        there = [one for one in there if one.up and one.runner.ready.is_set()]
        return holder_answer(self.chance.choice(there).runner.state, worker_id) if there else None

    def _check_refused(self, command, refusal, before):
        wrong = calls.is_refused_wrongly(self.ledger, command, refusal, before)
        if wrong:
            self.fail(Violation("answers follow those before them", wrong))

    def _check_acknowledged(self, command, position, value):
        """G2: what was answered is in the log."""
        wrong = calls.is_not_as_answered(self.ledger, command, position, value)
        if position > len(self.disk.streams[subjects.CONTROL]) or wrong:
            self.fail(Violation("acknowledged is stored", wrong or f"position {position} is not there yet"))

    # -- every step

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
        calls.check_cause(self.ledger, recorded, asyncio.get_running_loop().time())
        moved = {owner: self._fold(owner, recorded) for owner in self.rules}
        self.ledger.take(recorded)
        self.registers.take(recorded, len(self.disk.streams[subjects.LOGS]))
        if self.promptness is not None:
            for owner, keys in moved.items():
                self.promptness.moved(owner, keys, recorded.position)
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
        owner, left, known = self._batch
        if type(event) is Decision:
            if left:
                raise Violation("batches are whole", f"{left} events of {owner} are missing", event)
            known = Seen(event.seen)
            self._batch = (event.owner, event.count, known)
            batch = event.owner
        elif left:
            if recorded.actor.startswith("user:") and known.batch == NEVER:
                # What commands say is known to the commands after them, and to what they call for.
                known = Seen(known.through, stored.position)
            self._batch, batch = (owner, left - 1, known), owner
        else:
            batch, known = "", Seen(0)
        name = codec.kind_of(event).name
        return Stated(
            name,
            recorded.actor,
            stored.subject,
            stored.position,
            recorded.cause,
            batch,
            known.through,
            known,
            False,
            recorded.witness,
        )

    def _check_search(self, id, event):
        for check in searches.CHECKS:
            wrong = check(self.ledger, self.truth["searcher"], id)
            if wrong:
                raise Violation(check.__name__, wrong, searcher.ExperimentDeleting(id, ""))

    def check_records(self, owner):
        """A state's indexes follow from its records: a snapshot reaches the same decisions."""
        rules, live = self.rules[owner], self.truth[owner]
        loaded = self._copies[owner].of(live)
        for key in every_key(live):
            one, two = list(rules.react(live, key)), list(rules.react(loaded, key))
            if one != two:
                raise Violation("a snapshot decides the same", f"{key}: live {one}, loaded {two}")

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

    # -- G1

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
            found, right = dump(state), dump(self.truth[replica.rules.owner])
            what = next(
                f"{kind} {id}: {found[kind].get(id)} is not {right[kind].get(id)}"
                for kind in right
                for id in {**found[kind], **right[kind]}
                if found[kind].get(id) != right[kind].get(id)
            )
            self.fail(Violation("state is the fold of the log", f"{replica.name}: {what}"))
        return True

    # -- life

    def start(self):
        self.start_services()
        for one in self.provisioners:
            one.start()
        self.usual = self.chance.choice((1, 2, 2, 4))
        for number in range(self.chance.randrange(1, 5)):
            self.add_worker(f"w{number}")

    def start_services(self):
        for owner in self.owners:
            for number, replica in enumerate(self.of(owner)):
                replica.leads = number == 0
                replica.start()

    def add_worker(self, id):
        slots = self.chance.choice((0, 1, 2, 4, 8, *[self.usual] * 6))
        pool = self.chance.choice(("default", "default", "default", "second"))
        self.join(Worker(self, id, slots, pool))

    def join(self, one):
        """Add a worker to the cluster."""
        self.workers[one.id] = one
        one.start()

    def resume(self):
        """Continue every stopped process."""
        for one in (*self.replicas, *self.workers.values()):
            one.process.resume()

    async def sleep(self, seconds):
        """Let time pass; returns early when something went wrong."""
        if self.failure is None:
            await asyncio.wait([self._failed], timeout=seconds)
        if self.failure is not None:
            raise self.failure


class NeverBehind:
    """Nobody asks a simulated saver how far it is behind, since that is measured in real time."""

    allowed_s = 0.0

    def set_total(self, total):
        pass

    def set_done(self, total):
        pass

    def restart_age(self):
        pass


def parts(loop_time, plan):
    """Patches everything in the services that reads a clock or writes to a terminal."""
    clock = SimpleNamespace(monotonic=loop_time, time=lambda: EPOCH + loop_time())
    stack = ExitStack()
    ids = plan.chance("ids")
    stack.enter_context(limits_in_force(plan.limits))
    for target, name, value in (
        (listening, "time", clock),
        (heartbeats, "since_boot", loop_time),
        (heartbeats, "POLL_EVERY_S", POLL_EVERY_S),
        (orders, "POLL_EVERY_S", POLL_EVERY_S),
        (orders, "log", NO_METRICS),
        (registration, "log", NO_METRICS),
        (fact_outbox, "new_id", lambda: f"{ids.getrandbits(128):032x}"),
        (last_contact, "since_boot", loop_time),
        (settling, "time", clock),
        (settling, "POLL_EVERY_S", POLL_EVERY_S),
        (snapshot_store, "SAVE_EVERY_S", POLL_EVERY_S),
        (saved_portions, "Lag", NeverBehind),
        (snapshot_store, "Snapshot", lambda owner, state, fold_version: FakeSnapshot(state)),
        (pager, "MAX_IDLE_RECORDS", ROOM),
        (suspension, "TICK_S", POLL_EVERY_S),
        # So that reports are announced in portions.
        (reconciliation, "MAX_WORKERS_PER_REPORT", 2),
        (decider, "log", NO_METRICS),
        (runner, "log", NO_METRICS),
        (relay, "log", NO_METRICS),
    ):
        stack.enter_context(mock.patch.object(target, name, value))
    return stack


__all__ = ["Refused", "World", "parts", "run"]
