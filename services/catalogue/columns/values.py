"""Values of experiments' columns by experiment id, cached beside the fold.

A column is computed when it is first requested. After that, only the values of changed experiments are
recomputed, so that a list of 100,000 experiments is filtered and sorted without looking at their records.
The columns that were requested last are kept: anybody may ask for any name of a hyperparameter or metric.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import msgspec

from det_contracts.problems import invalid
from det_contracts.queries import TrialStatistics
from services.catalogue.columns.experiments import COLUMNS
from services.catalogue.domain import Experiment, State
from services.kit.bounded_dict import BoundedDict
from services.kit.roots import get_loaded
from services.kit.rules import Key

Values = Mapping[int, Any]
Getter = Callable[[State, Experiment], Any]
STATISTICS = ("last", "min", "max", "mean")
MAX_TRIALS_PER_QUERY = 10_000
"""Maximum trials per query, whose answer must fit into one message."""
HPARAM = "hp."
METRIC = "metric."
MAX_COLUMNS = 100
"""Columns that one request may name. Each may have to be computed for every experiment."""
MAX_CACHED = 200
"""Columns that are kept up to date: each costs memory, and time whenever an experiment changes."""
_STATISTIC = re.compile(rf"(?P<group>[^.]+)\.(?P<name>.+)\.(?P<statistic>{'|'.join(STATISTICS)})")


class Peers(Protocol):
    """The queries to other services; see `services.catalogue.peers`."""

    async def progress(self, experiment_ids: Iterable[int]) -> dict[int, float]: ...

    async def query(self, query: Any) -> Any: ...


def resolve_column(name: str) -> str:
    """The column with that name or JSON key. Raises `Refused` (400) if there is none."""
    name = next((column.name for column in COLUMNS.values() if column.key == name), name)
    if name in COLUMNS or name.startswith((HPARAM, METRIC)) or _STATISTIC.fullmatch(name):
        return name
    names = ", ".join([*COLUMNS, f"{HPARAM}NAME", f"{METRIC}NAME", f"GROUP.NAME.{'|'.join(STATISTICS)}"])
    raise invalid(f"there is no column '{name}'; columns are {names}")


class ColumnCache:
    """All columns requested so far."""

    def __init__(self) -> None:
        self._state: State | None = None
        self._values: BoundedDict[str, dict[int, Any]] = BoundedDict(MAX_CACHED)
        self._unsettled: dict[str, set[int]] = {}
        """By metric: experiments whose value may still change."""

    def on_records_changed(self, keys: Iterable[Key]) -> None:
        """Update columns after records were folded."""
        changed = {int(id) for kind, id in keys if kind == "experiments"}
        if self._state is not None and changed:
            self._update(self._state, changed)
        if any(kind == "users" for kind, _ in keys):
            # A renamed user changes no experiment, and yet what this column shows.
            self._values.pop("user", None)

    def on_reload(self) -> None:
        """Compute everything again, once somebody asks: the state is another object."""
        self._state = None

    def _update(self, state: State, changed: set[int]) -> None:
        for name, values in self._values.items():
            if name in self._unsettled:
                self._unsettled[name] |= changed
                continue
            getter = _getter(name)
            for id in changed:
                experiment = state.experiments.get(id)
                if experiment is None:
                    values.pop(id, None)
                else:
                    values[id] = getter(state, experiment)

    async def lookup(self, state: State, peers: Peers, names: Iterable[str]) -> dict[str, Values]:
        """The current values of the named columns. Raises `Refused` (unavailable)."""
        requested = set(names)
        if len(requested) > MAX_COLUMNS:
            raise invalid(f"{len(requested)} columns are named; a request may name {MAX_COLUMNS} at most")
        if state is not self._state:
            self._state, self._unsettled = state, {}
            self._values.clear()
        columns = {name: await self._column(state, peers, name) for name in requested}
        for name in self._unsettled.keys() - self._values.keys():
            del self._unsettled[name]
        return columns

    async def _column(self, state: State, peers: Peers, name: str) -> Values:
        if name == "progress":
            return await peers.progress(
                [experiment.id for experiment in state.experiments.values() if experiment.ended_at is None]
            )
        if name not in COLUMNS and not name.startswith(HPARAM):
            return await self._metric(state, peers, name)
        values = self._values.get(name)
        if values is None:
            getter = _getter(name)
            values = {experiment.id: getter(state, experiment) for experiment in state.experiments.values()}
        # Stored again even if it was known, which makes it the last used of the bounded dict.
        self._values[name] = values
        return (
            _with_current_durations(state, name, values)
            if name in COLUMNS and COLUMNS[name].changes_with_time
            else values
        )

    async def _metric(self, state: State, peers: Peers, name: str) -> Values:
        """A statistic of each experiment's best trial.

        Values that may still change are queried every time.
        """
        if name not in self._values:
            self._unsettled[name] = set(state.experiments)
        values, unsettled = self._values.get(name, {}), self._unsettled[name]
        self._values[name] = values
        queried = {
            id: experiment for id in unsettled if (experiment := state.experiments.get(id)) is not None
        }
        group, metric, statistic = _parse_metric_name(name)
        # Determine this before the query, so that a later report is not missed.
        final = {id for id, experiment in queried.items() if _is_final(state, experiment)}
        trials = {
            id: trial
            for id, experiment in queried.items()
            if (trial := representative_trial(experiment)) is not None
        }
        statistics = await _statistics(peers, list(trials.values()), group, metric)
        for id, experiment in queried.items():
            reported_value = _to_scalar(statistics.get(trials.get(id, 0), {}).get(statistic))
            is_searcher_metric = name == f"{METRIC}{experiment.metric}" and experiment.best_metric is not None
            values[id] = experiment.best_metric if is_searcher_metric else reported_value
        unsettled -= final
        return values


async def _statistics(peers: Peers, trial_ids: list[int], group: str, name: str) -> dict[int, dict[str, Any]]:
    statistics_by_trial: dict[int, dict[str, Any]] = {}
    for start in range(0, len(trial_ids), MAX_TRIALS_PER_QUERY):
        ids = trial_ids[start : start + MAX_TRIALS_PER_QUERY]
        query = TrialStatistics(trial_ids=ids, group=group, name=name)
        statistics_by_trial.update((int(id), statistics) for id, statistics in await peers.query(query))
    return statistics_by_trial


def representative_trial(experiment: Experiment) -> int | None:
    """The trial whose metrics represent the experiment: its best, or its first if there is no best."""
    return experiment.best_trial or experiment.first_trial


def _is_final(state: State, experiment: Experiment) -> bool:
    # Paged-out experiments are settled.
    trial = get_loaded(state.trials, representative_trial(experiment) or 0)
    return experiment.ended_at is not None and (trial is None or trial.settled)


def _parse_metric_name(name: str) -> tuple[str, str, str]:
    """Group, name and statistic.

    `metric.NAME` is the best searcher metric, or another metric's last value.
    """
    if name.startswith(METRIC):
        return "validation", name.removeprefix(METRIC), "last"
    match = _STATISTIC.fullmatch(name)
    if match is None:
        raise ValueError(f"'{name}' is not a metric column")
    return match[1], match[2], match[3]


def _with_current_durations(state: State, name: str, ended: Values) -> Values:
    of = COLUMNS[name].of
    return {id: of(state.experiments[id]) if value is None else value for id, value in ended.items()}


def _getter(name: str) -> Getter:
    if name.startswith(HPARAM):
        path = name.removeprefix(HPARAM).split(".")
        return lambda _, experiment: hyperparameter(experiment, path)
    column = COLUMNS[name]
    if column.changes_with_time:
        return lambda state, experiment: (
            None if experiment.ended_at is None else column.value(state, experiment)
        )
    return column.value


def hyperparameter(experiment: Experiment, path: list[str]) -> Any:
    """The constant from the configuration or, for a searched hyperparameter, the best trial's value."""
    configured_value = _value_at(msgspec.json.decode(experiment.hyperparameters), path)
    if not isinstance(configured_value, dict):
        return _to_scalar(configured_value)
    if "val" in configured_value:
        return _to_scalar(configured_value["val"])
    return _to_scalar(_value_at(msgspec.json.decode(experiment.point), path)) if experiment.point else None


def _to_scalar(value: Any) -> int | float | str | None:
    """Convert lists and maps to text, so that all values are comparable."""
    return value if value is None or isinstance(value, int | float | str) else json.dumps(value)


def _value_at(node: Any, path: list[str]) -> Any:
    for part in path:
        node = node.get(part) if isinstance(node, dict) else None
    return node


def hyperparameters(experiment: Experiment) -> Iterable[str]:
    """Dotted names of the hyperparameters that an experiment sets or searches."""
    return _leaf_names(msgspec.json.decode(experiment.hyperparameters), "")


def _leaf_names(tree: dict[str, Any], prefix: str) -> Iterable[str]:
    for name, inner in tree.items():
        if isinstance(inner, dict) and "type" not in inner:
            yield from _leaf_names(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"
