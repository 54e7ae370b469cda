"""The whole cluster in one thread: its parts, who asks whom, and its start."""

import asyncio

import msgspec

from det_contracts import script_queries, subjects
from det_contracts.problems import Refused, invalid, unavailable
from services.checkpoints.app import RULES as CHECKPOINTS
from services.kit.rules import Call
from services.metrics.app import RULES as METRICS
from services.scheduler.app import RULES as SCHEDULER
from services.scheduler.script_answers import holder_answer
from services.searcher.app import RULES as SEARCHER
from tests.simulation import calls
from tests.simulation.broker import Disk
from tests.simulation.engine import LyingEngine
from tests.simulation.facts import Seen
from tests.simulation.fake_database import Copies, FakeDatabase
from tests.simulation.gateway import RULES as GATEWAY
from tests.simulation.gateway import Gateway
from tests.simulation.intake import Intake
from tests.simulation.ledger import Ledger
from tests.simulation.poison import Poison
from tests.simulation.provisioner import Provisioner
from tests.simulation.registers import Registers
from tests.simulation.replica import Replica
from tests.simulation.script import PROGRAMS
from tests.simulation.shared_decoder import SharedDecoder
from tests.simulation.step_checks import StepChecks
from tests.simulation.story import Story
from tests.simulation.violation import Violation
from tests.simulation.virtual_time import EPOCH
from tests.simulation.worker import Worker

PATIENCE_S = 10.0


class World(StepChecks):
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
        self.newer = set()
        """Names of events that a newer version writes."""
        self._ids = 0
        self._watched = None
        self._batch = ("", 0, Seen(0))
        self._loop = asyncio.get_running_loop()
        self._failed = self._loop.create_future()
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
            shared_database = FakeDatabase(self.chance)
            return [
                Gateway(self, number, shared_database if self.plan.share else FakeDatabase(self.chance))
                for number in range(self.plan.gateways)
            ]
        shelf, count = FakeDatabase(self.chance), 1 + (self.chance.random() < 0.5)
        return [Replica(self, self.rules[owner], number, shelf) for number in range(count)]

    # -- small things that all use

    def clock(self):
        return EPOCH + self._loop.time()

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
        return list(
            {id(replica.shelf): replica.shelf for replica in self.of(owner) if owner in self.rules}.values()
        )

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
        before = self.ledger.ends_before[call.id] = len(self.disk.streams[subjects.CONTROL])
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
            text = f"{command} was answered at {position}, and sent when the log ended at {before}"
            self.fail(Violation("answers follow those before them", text))
        return position, value

    async def news(self, owner, trial_id, ask):
        """Ask like a script: the news, or None after a while or if the answer got lost."""
        there = [replica for replica in self.of(owner) if replica.up and replica.runner.ready.is_set()]
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
        there = [replica for replica in self.of("scheduler") if replica.up and replica.runner.ready.is_set()]
        await asyncio.sleep(0.05 * self.chance.random())
        # A process that has ended meanwhile does not answer.
        there = [replica for replica in there if replica.up and replica.runner.ready.is_set()]
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

    # -- life

    def start(self):
        self.start_services()
        for provisioner in self.provisioners:
            provisioner.start()
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

    def join(self, worker):
        """Add a worker to the cluster."""
        self.workers[worker.id] = worker
        worker.start()

    def resume(self):
        """Continue every stopped process."""
        for participant in (*self.replicas, *self.workers.values()):
            participant.process.resume()

    async def sleep(self, seconds):
        """Let time pass; returns early when something went wrong."""
        if self.failure is None:
            await asyncio.wait([self._failed], timeout=seconds)
        if self.failure is not None:
            raise self.failure
