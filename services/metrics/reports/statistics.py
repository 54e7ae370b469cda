"""Running totals of trials and statistics of their metrics."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import msgspec
import sqlalchemy as sa

from det_contracts.limits import NAME_CHARACTERS
from det_contracts.queries import MetricNames, TrialStatistics, TrialSummaries
from det_contracts.reports import MAX_NAMES_PER_GROUP, MAX_NAMES_PER_TRIAL, ReportBatch, is_training
from services.kit.database import id_batches, upsert
from services.metrics.domain import Piece
from services.metrics.reports.partitions import partitions_of, values_of
from services.metrics.reports.ranking import best_and_latest
from services.metrics.reports.summary import Summary, extend
from services.metrics.reports.tables import HOMES, SUMMARIES, TRIALS

C = SUMMARIES.c
X_AXIS_METRIC = "epoch"
"""The metric that charts can use as x axis."""
ANSWER_BYTES = 4 * 1024 * 1024
"""Maximum size of the trials' part in one answer.

The gateway adds a similar amount, and the broker takes 8 MiB.
"""
Statistics = dict[str, Summary]
"""By metric name."""
_statistics = msgspec.json.Decoder(Statistics)
_names = msgspec.json.Decoder(dict[str, msgspec.Raw])
_summary_decoder = msgspec.json.Decoder(Summary)
# Built once: to build a statement takes longer than to run it, and these run in each save.
_HOME = sa.select(HOMES.c.experiment_id).where(HOMES.c.trial_id == sa.bindparam("of_trial"))
_TOTALS = sa.select(TRIALS).where(TRIALS.c.trial_id == sa.bindparam("of_trial"))
_SUMMARY = sa.select(C.body).where(C.trial_id == sa.bindparam("of_trial"), C.kind == sa.bindparam("of_kind"))
_HOMECOMING = (
    sa.update(TRIALS)
    .where(TRIALS.c.trial_id.in_(sa.bindparam("of_trials", expanding=True)))
    .values(
        experiment_id=sa.select(HOMES.c.experiment_id)
        .where(HOMES.c.trial_id == TRIALS.c.trial_id)
        .scalar_subquery()
    )
)
"""Sets the experiments of trials whose reports were read before the event that created them."""


class Totals:
    """Collects what one commit adds."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._trials: dict[int, dict[str, Any]] = {}
        self._statistics: dict[tuple[int, str], Statistics] = {}
        self._homes: dict[int, int] = {}
        self._names_left: dict[int, int] = {}
        """For trials with new names: how many more names they may have."""
        self._outdated: dict[int, None] = {}
        """Trials whose statistics include reports that were archived since."""

    def count(self, batch: ReportBatch, piece: Piece) -> Piece:
        """Add accepted reports. Returns them with only those names that are kept.

        A script may use any number of names, of any length. Names beyond the limits are ignored: neither
        their statistics nor their points are kept.
        """
        statistics = self._statistics_of(batch.trial_id, piece.group)
        kept_columns = {}
        for name, values in piece.columns.items():
            if name in statistics or self._admits_name(batch, statistics, name):
                statistics[name] = extend(statistics.get(name, Summary()), piece.steps, values)
                kept_columns[name] = values
        trial = self._trial(batch)
        if is_training(piece.group):
            trial["total_batches"] = max(trial["total_batches"], *piece.steps)
        return (
            piece
            if len(kept_columns) == len(piece.columns)
            else msgspec.structs.replace(piece, columns=kept_columns)
        )

    def _admits_name(self, batch: ReportBatch, statistics: Statistics, name: str) -> bool:
        """Whether there is room for a new name. The searcher metric and the charts' axis are always kept."""
        if name in (batch.searcher_metric, X_AXIS_METRIC):
            return len(name) <= NAME_CHARACTERS
        names_left = self._free_names(batch.trial_id)
        if names_left <= 0 or not _may_have_name(statistics, name):
            return False
        self._names_left[batch.trial_id] = names_left - 1
        return True

    def _free_names(self, trial_id: int) -> int:
        if trial_id not in self._names_left:
            stored = self._connection.execute(sa.select(C.kind, C.body).where(C.trial_id == trial_id))
            held = {kind: len(_names.decode(body)) for kind, body in stored}
            mine = {
                kind: len(statistics) for (id, kind), statistics in self._statistics.items() if id == trial_id
            }
            self._names_left[trial_id] = MAX_NAMES_PER_TRIAL - sum((held | mine).values())
        return self._names_left[trial_id]

    def finish(self) -> None:
        """Write everything collected so far. All points must be written."""
        for trial_id in self._outdated:
            self._recount(trial_id)
        upsert(self._connection, TRIALS, list(self._trials.values()))
        self._write_homes()
        bodies = [
            {"trial_id": trial_id, "kind": kind, "body": msgspec.json.encode(statistics)}
            for (trial_id, kind), statistics in self._statistics.items()
        ]
        upsert(self._connection, SUMMARIES, bodies)
        self._trials, self._statistics, self._names_left, self._outdated = {}, {}, {}, {}

    def record_home(self, trial_id: int, experiment_id: int) -> None:
        """Record the experiment of a new trial."""
        self._homes[trial_id] = experiment_id

    def _write_homes(self) -> None:
        if not self._homes:
            return
        rows = [{"trial_id": id, "experiment_id": home} for id, home in self._homes.items()]
        upsert(self._connection, HOMES, rows)
        for ids in id_batches(list(self._homes)):
            self._connection.execute(_HOMECOMING, {"of_trials": ids})
        self._homes = {}

    def _home(self, batch: ReportBatch) -> int:
        """The trial's experiment. That of a trial from before homes were recorded is the first claimed."""
        experiment_id: int | None = self._connection.execute(_HOME, {"of_trial": batch.trial_id}).scalar()
        return batch.experiment_id if experiment_id is None else experiment_id

    def recount(self, trial_id: int) -> None:
        """Have the statistics recomputed from the reports that are not archived."""
        # Once for a commit, in which a script can begin hundreds of runs: all of the trial's points are read.
        self._outdated[trial_id] = None

    def _recount(self, trial_id: int) -> None:
        # All of it: a minimum cannot be taken back from what an outdated run had added.
        self._statistics = {
            key: statistics for key, statistics in self._statistics.items() if key[0] != trial_id
        }
        self._connection.execute(sa.delete(SUMMARIES).where(C.trial_id == trial_id))
        for partition in partitions_of(self._connection, [trial_id]):
            # Over the whole partition at once, so that sums do not depend on the chunks.
            for name, steps, values in values_of(self._connection, partition):
                statistics = self._statistics.setdefault((trial_id, partition.kind), {})
                if _may_have_name(statistics, name):
                    statistics[name] = extend(statistics.get(name, Summary()), steps, values)

    def _trial(self, batch: ReportBatch) -> dict[str, Any]:
        if batch.trial_id not in self._trials:
            row = self._connection.execute(_TOTALS, {"of_trial": batch.trial_id}).mappings().first()
            self._trials[batch.trial_id] = dict(row) if row else self._new_trial(batch)
        return self._trials[batch.trial_id]

    def _new_trial(self, batch: ReportBatch) -> dict[str, Any]:
        return {
            "trial_id": batch.trial_id,
            "experiment_id": self._home(batch),
            "smaller_is_better": batch.smaller_is_better,
            "total_batches": 0,
        }

    def _statistics_of(self, trial_id: int, kind: str) -> Statistics:
        if (trial_id, kind) not in self._statistics:
            body = self._connection.execute(_SUMMARY, {"of_trial": trial_id, "of_kind": kind}).scalar()
            self._statistics[trial_id, kind] = _statistics.decode(body) if body else {}
        return self._statistics[trial_id, kind]


def _may_have_name(statistics: Statistics, name: str) -> bool:
    """Whether a group has, or may have, a name."""
    return name in statistics or (len(statistics) < MAX_NAMES_PER_GROUP and len(name) <= NAME_CHARACTERS)


def trial_summaries(connection: sa.Connection, query: TrialSummaries) -> dict[str, Any]:
    """Totals, best and latest validation, and statistics of each trial that has reported.

    If that is too much for one answer, the largest entries are shortened, so no trial displaces another.
    """
    rows = connection.execute(sa.select(TRIALS).where(TRIALS.c.trial_id.in_(query.trial_ids))).mappings()
    return fit_summaries({str(row["trial_id"]): _summary(connection, row) for row in rows.all()})


def fit_summaries(summaries: dict[str, Any]) -> dict[str, Any]:
    """Summaries by trial, the largest shortened so that all fit into one answer."""
    sizes = {id: _size(summary) for id, summary in summaries.items()}
    max_bytes = _fair_size(sizes.values(), ANSWER_BYTES)
    return {
        id: summary if sizes[id] <= max_bytes else _shorten(summary, max_bytes)
        for id, summary in summaries.items()
    }


def _size(value: Any) -> int:
    return len(msgspec.json.encode(value))


def _fair_size(sizes: Iterable[int], max_bytes: int) -> int:
    """The maximum size of each entry so that all fit. Small entries leave their remainder to the others."""
    ordered = sorted(sizes)
    for number, size in enumerate(ordered):
        level = max_bytes // (len(ordered) - number)
        if size > level:
            return level
        max_bytes -= size
    return max(ordered, default=0)


def _shorten(summary: dict[str, Any], max_bytes: int) -> dict[str, Any]:
    """A trial's summary shortened to fit: totals, and of each part the names that fit."""
    names = ("best_validation", "latest_validation")
    validations = {name: _shorten_validation(summary[name], max_bytes // 4) for name in names}
    return summary | validations | {"summary": _shorten_groups(summary["summary"], max_bytes // 2)}


def _shorten_validation(validation: dict[str, Any] | None, max_bytes: int) -> dict[str, Any] | None:
    if validation is None:
        return None
    bare = validation | {"metrics": {}}
    return bare | {"metrics": _fitting_values(validation["metrics"], max_bytes - _size(bare))}


def _shorten_groups(groups: dict[str, Any], max_bytes: int) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for left, (group, values) in zip(range(len(groups), 0, -1), groups.items(), strict=True):
        some = _fitting_values(values, max_bytes // left - _size(group))
        if some:
            shown[group] = some
            max_bytes -= _size({group: some})
    return shown


def _fitting_values(values: dict[str, Any], max_bytes: int) -> dict[str, Any]:
    """The values that fit, in order."""
    shown = {}
    for name, value in values.items():
        size = _size({name: value})
        if size <= max_bytes:
            shown[name] = value
            max_bytes -= size
    return shown


def _summary(connection: sa.Connection, trial: Any) -> dict[str, Any]:
    best, latest = best_and_latest(connection, trial)
    query = sa.select(C.kind, C.body).where(C.trial_id == trial["trial_id"]).order_by(C.kind)
    summary = {kind: _public_summary(body) for kind, body in connection.execute(query)}
    return {
        "total_batches": trial["total_batches"],
        "best_validation": best,
        "latest_validation": latest,
        "summary": summary,
    }


def _public_summary(body: bytes) -> dict[str, Any]:
    # An earlier release kept any number of names.
    summaries = _names.decode(body)
    return {
        name: _summary_decoder.decode(summaries[name]).to_public()
        for name in sorted(summaries)[:MAX_NAMES_PER_GROUP]
    }


def metric_names(connection: sa.Connection, query: MetricNames) -> dict[str, list[str]]:
    """Metric names by group over several experiments.

    If that is too much for one answer, experiments with the most names contribute fewer, so that none hides
    the names of another.
    """
    chosen = (
        sa.select(TRIALS.c.experiment_id, C.kind, C.body)
        .join(TRIALS, TRIALS.c.trial_id == C.trial_id)
        .where(TRIALS.c.experiment_id.in_(query.experiment_ids))
    )
    by_experiment: dict[int, set[tuple[str, str]]] = {}
    for experiment_id, kind, body in connection.execute(chosen):
        names = by_experiment.setdefault(experiment_id, set())
        names.update((kind, name) for name in _names.decode(body))
    return fit_names(*by_experiment.values())


def fit_names(*parts: Collection[tuple[str, str]]) -> dict[str, list[str]]:
    """Names by group. If all are too many for one answer, the largest parts contribute fewer."""
    sizes = [sum(map(_name_size, names)) for names in parts]
    max_bytes = _fair_size(sizes, ANSWER_BYTES)
    names_by_group: dict[str, set[str]] = {}
    for size, names in zip(sizes, parts, strict=True):
        for kind, name in names if size <= max_bytes else _shortest_names(names, max_bytes):
            names_by_group.setdefault(kind, set()).add(name)
    return {kind: sorted(names) for kind, names in sorted(names_by_group.items())}


def _name_size(name: tuple[str, str]) -> int:
    """Upper bound in bytes of a group and a name in an answer."""
    return _size(name)


def _shortest_names(names: Iterable[tuple[str, str]], max_bytes: int) -> Iterable[tuple[str, str]]:
    """The shortest of an experiment's names, as many as fit."""
    for name in sorted(names, key=lambda name: (_name_size(name), name)):
        max_bytes -= _name_size(name)
        if max_bytes < 0:
            return
        yield name


def trial_statistics(connection: sa.Connection, query: TrialStatistics) -> list[tuple[int, dict[str, Any]]]:
    """Trials that reported the metric, each with its statistics."""
    rows = []
    for ids in id_batches(query.trial_ids):
        chosen = sa.select(C.trial_id, C.body).where(C.trial_id.in_(ids), C.kind == query.group)
        for trial_id, body in connection.execute(chosen):
            summary = _names.decode(body).get(query.name)
            if summary is not None:
                rows.append((trial_id, _summary_decoder.decode(summary).to_public()))
    return rows
