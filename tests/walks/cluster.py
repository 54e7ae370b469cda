"""All six services over one log, without any I/O; what each does with each event can be counted."""

from dataclasses import fields
from itertools import islice

import msgspec

from det_contracts import codec, commands, queries, subjects
from det_contracts.envelope import Recorded
from det_contracts.ids import task_of
from det_contracts.reports import ReportBatch, Series
from services.checkpoints.app import RULES as CHECKPOINTS
from services.gateway.app import RULES as GATEWAY
from services.kit.rules import Call
from services.kit.testing import strict_timers
from services.metrics.app import RULES as METRICS
from services.metrics.domain import JudgedBatch, LogLines
from services.scheduler.app import RULES as SCHEDULER
from services.searcher.app import RULES as SEARCHER
from services.webhooks.app import RULES as WEBHOOKS
from tests.walks.counting import Cost, Meter, Records

ALL = {rules.owner: rules for rules in (SEARCHER, SCHEDULER, METRICS, CHECKPOINTS, WEBHOOKS, GATEWAY)}
TIMERS = {owner: strict_timers(rules) for owner, rules in ALL.items()}
SIZE = msgspec.json.Encoder().encode


EXPIRED_AT_ONCE = 5


def _some_expired(timers, state, now):
    """As in a round, which is full at some time."""
    return [fact for _, fact in islice(timers.facts(state, now), EXPIRED_AT_ONCE)]


class Cluster:
    """States and what they decide; `counted` has the most that each kind of call has cost."""

    def __init__(self):
        self.states = {owner: rules.state() for owner, rules in ALL.items()}
        self.touched = {owner: {} for owner in ALL}
        self.positions = dict.fromkeys(subjects.STREAM_SUBJECTS, 0)
        self.now = 1_700_000_000.0
        self.counted = {}
        self.log = []
        self._meter = None
        self._calls = 0

    def begin_to_count(self):
        """From now on every call is counted, and records are seen through what a view of them has."""
        self._meter = Meter()
        for state in self.states.values():
            for field in fields(state):
                if "derived" not in field.metadata:
                    setattr(state, field.name, Records(getattr(state, field.name), self._meter))

    def _count(self, name, function, *args):
        """Call a function; what it yields is taken out of it."""
        if self._meter is None:
            result = function(*args)
            return result if isinstance(result, str | dict | float | None) else list(result)
        with self._meter.counting() as meter:
            result = function(*args)
            result = result if isinstance(result, str | dict | float | None) else list(result)
        cost = self.counted.setdefault(name, Cost())
        cost.steps = max(cost.steps, meter.steps)
        return result

    # -- what is in the log

    def tell(self, *events):
        """Events of CONTROL, whoever states them."""
        for event in events:
            recorded = self._recorded(subjects.CONTROL, event)
            self.log.append(recorded)
            for owner in ALL:
                self._fold(owner, recorded, type(event))

    def _recorded(self, stream, event):
        self.positions[stream] += 1
        self.now += 0.001
        return Recorded(self.positions[stream], event, f"e{self.positions[stream]}", "", self.now, "", stream)

    def _fold(self, owner, recorded, kind):
        state, name = self.states[owner], f"{owner} folds {kind.__module__.split('.')[-1]}.{kind.__name__}"
        keys = self._count(name, ALL[owner].evolve, state, recorded)
        self.touched[owner].update(dict.fromkeys(keys))
        if self._meter is not None:
            stored = [getattr(state, field).get(id) for field, id in dict.fromkeys(keys)]
            cost = self.counted[name]
            cost.size_bytes = max(
                cost.size_bytes, sum(len(SIZE(record)) for record in stored if record is not None)
            )

    def report(self, trial_id, steps, *, group="validation", number=0, decide=True):
        """A batch of reports of a trial, one for each number of steps."""
        trial = self.states["searcher"].trials[trial_id]
        columns = {"loss": [1.0 / (2 + at) for at in steps]}
        batch = ReportBatch(
            trial_id=trial_id,
            experiment_id=trial.experiment_id,
            run=trial.run,
            number=number,
            searcher_metric="loss",
            smaller_is_better=True,
            series=[Series(group, list(steps), [1.0] * len(steps), columns, [])],
        )
        self._fold("metrics", self._recorded(subjects.REPORTS, JudgedBatch(batch)), ReportBatch)
        if decide:
            self.decide()

    def write(self, allocation_id, offset, source="task"):
        """A line of a task's log."""
        lines = LogLines(
            task_id=task_of(allocation_id),
            allocation_id=allocation_id,
            worker_id="w",
            source=source,
            offset=offset,
            count=1,
            lines=msgspec.Raw(b"[]"),
        )
        self._fold("metrics", self._recorded(subjects.LOGS, JudgedBatch(lines)), LogLines)

    # -- what the services make of it

    def decide(self, *, most=None):
        """Let all react until they are at rest; `most` leaves off after so many reactions."""
        moved = True
        while moved and most != 0:
            moved = False
            for owner, rules in ALL.items():
                touched = self.touched[owner]
                for key in list(touched):
                    decided = self._count(f"{owner} reacts on {key[0]}", rules.react, self.states[owner], key)
                    if not decided:
                        touched.pop(key, None)
                    else:
                        self.tell(*decided)
                        moved = True
                        most = most and most - 1
                self._expire(owner)

    def _expire(self, owner):
        timers, state = TIMERS[owner], self.states[owner]
        due = self._count(f"{owner} is due", timers.due, state)
        if due is not None and due <= self.now:
            self.tell(*self._count(f"{owner} expires", _some_expired, timers, state, self.now))
            self.decide()

    def ask(self, command):
        """Have a command ruled on, and all that follows from it; returns its value."""
        kind, self._calls = type(command), self._calls + 1
        owner = commands.OWNER_OF.get(kind) or kind.__module__.split(".")[1]
        call = Call(f"c{self._calls}", self.now)
        rule = ALL[owner].commands[kind]
        results = []
        self._count(
            f"{owner} rules on {kind.__name__}",
            lambda: results.append(rule(self.states[owner], command, call)) or "",
        )
        self.tell(*results[0].events)
        self.decide()
        return results[0].value

    def query(self, query):
        """What the owner answers from its folded state."""
        kind = type(query)
        owner = queries.OWNER_OF[kind]
        return self._count(
            f"{owner} answers {kind.__name__}", ALL[owner].answers[kind], self.states[owner], query
        )

    def read(self, owner, readings):
        """What operators see of a state, each value of it."""
        self._count(
            f"{owner} is measured",
            lambda: [list(reading.values.items()) for reading in readings(self.states[owner])],
        )

    def pass_time(self, seconds):
        """Let the clock move, and what is due come."""
        self.now += seconds
        for owner in ALL:
            self._expire(owner)
        self.decide()

    # -- what is asked by tests

    def kinds_told(self):
        """The kinds of events that are in the log."""
        return {type(recorded.event) for recorded in self.log}

    def tables(self):
        """How many records each table of each service has."""
        return {
            f"{owner}.{field.name}": len(getattr(state, field.name))
            for owner, state in self.states.items()
            for field in fields(state)
            if "derived" not in field.metadata
        }


def kinds_there_are():
    """The kinds of events that the log may hold, without the record of a decision."""
    return {kind.record for kind in codec.kinds() if kind.name != "decision"}
