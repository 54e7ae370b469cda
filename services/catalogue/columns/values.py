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


class _Held:
    """The columns that were requested of one state.

    A lookup that waits for an answer goes on with what it began with: what it computes of a state that was
    loaded anew meanwhile must not be found by others.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.values: BoundedDict[str, dict[int, Any]] = BoundedDict(MAX_CACHED)
        self.unsettled: dict[str, set[int]] = {}
        """By metric: experiments whose value may still change."""

    def update(self, changed: set[int]) -> None:
        """Look at some experiments again, and drop those that were deleted."""
        here = {id: self.state.experiments.get(id) for id in changed}
        for name, values in self.values.items():
            unsettled = self.unsettled.get(name)
            getter = _getter(name) if unsettled is None else None
            for id, experiment in here.items():
                if experiment is None:
                    values.pop(id, None)
                    if unsettled is not None:
                        unsettled.discard(id)
                elif getter is not None:
                    values[id] = getter(self.state, experiment)
                elif unsettled is not None:
                    unsettled.add(id)


class ColumnCache:
    """All columns requested so far."""

    def __init__(self) -> None:
        self._held: _Held | None = None

    def on_records_changed(self, keys: Iterable[Key]) -> None:
        """Update columns after records were folded."""
        if self._held is None:
            return
        changed = {int(id) for kind, id in keys if kind == "experiments"}
        if changed:
            self._held.update(changed)
        if any(kind == "users" for kind, _ in keys):
            # A renamed user changes no experiment, and yet what this column shows.
            self._held.values.pop("user", None)

    def on_reload(self) -> None:
        """Compute everything again, once somebody asks: the state is another object."""
        self._held = None

    async def lookup(self, state: State, peers: Peers, names: Iterable[str]) -> dict[str, Values]:
        """The current values of the named columns. Raises `Refused` (unavailable)."""
        requested = set(names)
        if len(requested) > MAX_COLUMNS:
            raise invalid(f"{len(requested)} columns are named; a request may name {MAX_COLUMNS} at most")
        held = self._held
        if held is None or held.state is not state:
            held = self._held = _Held(state)
        columns = {name: await _column(held, peers, name) for name in requested}
        for name in held.unsettled.keys() - held.values.keys():
            del held.unsettled[name]
        return columns


async def _column(held: _Held, peers: Peers, name: str) -> Values:
    state = held.state
    if name == "progress":
        return await peers.progress(
            [experiment.id for experiment in state.experiments.values() if experiment.ended_at is None]
        )
    if name not in COLUMNS and not name.startswith(HPARAM):
        return await _metric(held, peers, name)
    values = held.values.get(name)
    if values is None:
        getter = _getter(name)
        values = {experiment.id: getter(state, experiment) for experiment in state.experiments.values()}
    # Stored again even if it was known, which makes it the last used of the bounded dict.
    held.values[name] = values
    return (
        _with_current_durations(state, name, values)
        if name in COLUMNS and COLUMNS[name].changes_with_time
        else values
    )


async def _metric(held: _Held, peers: Peers, name: str) -> Values:
    """A statistic of each experiment's best trial.

    Values that may still change are queried every time.
    """
    state = held.state
    if name not in held.values:
        held.unsettled[name] = set(state.experiments)
    values, unsettled = held.values.get(name, {}), held.unsettled[name]
    held.values[name] = values
    queried = {id: experiment for id in unsettled if (experiment := state.experiments.get(id)) is not None}
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
        # One that was deleted meanwhile is not put in again.
        if id in unsettled:
            reported_value = _to_scalar(statistics.get(trials.get(id, 0), {}).get(statistic))
            is_searcher_metric = name == f"{METRIC}{experiment.metric}" and experiment.best_metric is not None
            values[id] = experiment.best_metric if is_searcher_metric else reported_value
    # Nor is one settled that changed meanwhile.
    unsettled -= {id for id in final if state.experiments.get(id) is queried[id]}
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
