"""Three streams as lists, folded in any interleaving, and written to a database in any cuts."""

import itertools

import msgspec

from det_contracts import codec, subjects
from det_contracts.reports import LogBatch, LogLine, ReportBatch, Series
from services.kit.log import Stored
from services.kit.rules import dump
from services.kit.snapshot import Snapshot
from services.metrics.app import RULES
from services.metrics.domain import State
from services.metrics.store import project


def series(group, steps, columns, batch_metrics=()):
    return Series(group, list(steps), [100.0 + s for s in steps], columns, list(batch_metrics))


def training(steps, **columns):
    return series("training", steps, columns)


def validation(steps, **columns):
    return series("validation", steps, columns)


def reports(*of, trial=1, run=1, number=1, experiment=1, metric="loss", smaller=True, sender=""):
    return ReportBatch(
        trial_id=trial,
        experiment_id=experiment,
        run=run,
        number=number,
        searcher_metric=metric,
        smaller_is_better=smaller,
        series=list(of),
        sender=sender,
    )


def lines(*texts, offset=0, task="1.a", run=1, worker="w1", source="task", **more):
    output = {"at": 5.0, "stdtype": "stdout", "level": None, "rank": None} | more
    return LogBatch(
        task_id=task,
        allocation_id=f"{task}.{run}",
        worker_id=worker,
        source=source,
        offset=offset,
        lines=[LogLine(text=text, **output) for text in texts],
    )


class World:
    """The streams, and one service that has folded them up to some position each."""

    def __init__(self):
        self.streams = {stream: [] for stream in subjects.STREAM_SUBJECTS}
        self.restart()

    def restart(self):
        """Start over from the beginning of the log, knowing nothing."""
        self.state = State()
        self.at = dict.fromkeys(self.streams, 0)
        self.unsaved = []
        self.dirty = set()
        return self

    def add(self, *what):
        """Append batches and events to the streams that they belong to."""
        for record in what:
            if isinstance(record, ReportBatch):
                stream, subject = subjects.REPORTS, subjects.reports(record.trial_id)
            elif isinstance(record, LogBatch):
                stream, subject = subjects.LOGS, subjects.logs(record.task_id)
            else:
                stream, subject = subjects.CONTROL, codec.subject_of(record)
            self.put(stream, subject, record)
        return self

    def put(self, stream, subject, record):
        messages = self.streams[stream]
        body = record if isinstance(record, bytes) else None
        if body is None and stream == subjects.CONTROL:
            body = codec.encode(record, id=str(len(messages)), actor="t", at=1.0)
        messages.append(Stored(subject, len(messages) + 1, body or msgspec.json.encode(record)))

    def step(self, stream):
        """Fold the next message of a stream; False when there is none."""
        if self.at[stream] == len(self.streams[stream]):
            return False
        message = self.streams[stream][self.at[stream]]
        self.at[stream] += 1
        read = RULES.decode.get(stream)
        recorded = read(message, stream) if read else codec.decode(message.body, message.position, stream)
        self.dirty |= set(RULES.evolve(self.state, recorded))
        self.unsaved.append(recorded)
        return True

    def fold(self):
        """Fold all that is there."""
        for stream in self.streams:
            while self.step(stream):
                pass
        return self

    def pending(self):
        """What the state calls for."""
        decisions = itertools.chain(
            *(RULES.react(self.state, ("trials", id)) for id in sorted(self.state.trials))
        )
        return list(decisions)

    def decide(self):
        """Append what the state calls for and read it back; returns it."""
        decided = self.pending()
        self.add(*decided)
        while self.step(subjects.CONTROL):
            pass
        assert self.pending() == []
        return decided

    def save(self, connection):
        """Commit what was folded since the last time, as the saver does."""
        records = {key: getattr(self.state, key[0]).get(key[1]) for key in self.dirty}
        assert Snapshot("metrics", State).save(connection, records, self.at)
        project(connection, records, self.unsaved)
        self.unsaved, self.dirty = [], set()

    def dump(self):
        return dump(self.state)
