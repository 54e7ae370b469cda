"""Values of experiments' columns by experiment id, cached beside the fold.

A column is computed when it is first requested. After that, only the values of changed experiments are
recomputed, so that a list of 100,000 experiments is filtered and sorted without looking at their records.
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
from services.kit.roots import loaded
from services.kit.rules import Key

Values = Mapping[int, Any]
Getter = Callable[[State, Experiment], Any]
STATISTICS = ("last", "min", "max", "mean")
AT_ONCE = 10_000
"""Maximum trials per query, whose answer must fit into one message."""
HPARAM = "hp."
METRIC = "metric."
_STATISTIC = re.compile(rf"(?P<group>[^.]+)\.(?P<name>.+)\.(?P<statistic>{'|'.join(STATISTICS)})")


class Peers(Protocol):
    """The queries to other services; see `services.catalogue.peers`."""

    async def progress(self, experiment_ids: Iterable[int]) -> dict[int, float]: ...

    async def ask(self, query: Any) -> Any: ...


def known(name: str) -> str:
    """The column with that name or JSON key. Raises `Refused` (400) if there is none."""
    name = next((one.name for one in COLUMNS.values() if one.key == name), name)
    if name in COLUMNS or name.startswith((HPARAM, METRIC)) or _STATISTIC.fullmatch(name):
        return name
    there = ", ".join([*COLUMNS, f"{HPARAM}NAME", f"{METRIC}NAME", f"GROUP.NAME.{'|'.join(STATISTICS)}"])
    raise invalid(f"there is no column '{name}'; columns are {there}")


class Columns:
    """All columns requested so far."""

    def __init__(self) -> None:
        self._of: State | None = None
        self._made: dict[str, dict[int, Any]] = {}
        self._open: dict[str, set[int]] = {}
        """By metric: experiments whose value may still change."""

    def note(self, keys: Iterable[Key]) -> None:
        """Update columns after records were folded."""
        moved = {int(id) for kind, id in keys if kind == "experiments"}
        if self._of is not None and moved:
            self._follow(self._of, moved)
        if any(kind == "users" for kind, _ in keys):
            self._made.pop("user", None)

    def _follow(self, state: State, moved: set[int]) -> None:
        for name, values in self._made.items():
            if name in self._open:
                self._open[name] |= moved
                continue
            getter = _getter(name)
            for id in moved:
                one = state.experiments.get(id)
                if one is None:
                    values.pop(id, None)
                else:
                    values[id] = getter(state, one)

    async def lookup(self, state: State, peers: Peers, names: Iterable[str]) -> dict[str, Values]:
        """The current values of the named columns. Raises `Refused` (unavailable)."""
        if state is not self._of:
            self._of, self._made, self._open = state, {}, {}
        return {name: await self._column(state, peers, name) for name in dict.fromkeys(names)}

    async def _column(self, state: State, peers: Peers, name: str) -> Values:
        if name == "progress":
            return await peers.progress(
                [one.id for one in state.experiments.values() if one.ended_at is None]
            )
        if name not in COLUMNS and not name.startswith(HPARAM):
            return await self._metric(state, peers, name)
        if name not in self._made:
            getter = _getter(name)
            self._made[name] = {one.id: getter(state, one) for one in state.experiments.values()}
        found = self._made[name]
        return _until_now(state, name, found) if name in COLUMNS and COLUMNS[name].moves else found

    async def _metric(self, state: State, peers: Peers, name: str) -> Values:
        """A statistic of each experiment's best trial.

        Values that may still change are queried every time.
        """
        values = self._made.setdefault(name, {})
        opened = self._open.setdefault(name, set(state.experiments))
        asked = {id: one for id in opened if (one := state.experiments.get(id)) is not None}
        group, metric, statistic = _parts(name)
        # Determine this before the query, so that a later report is not missed.
        final = {id for id, one in asked.items() if _settled(state, one)}
        trials = {id: trial for id, one in asked.items() if (trial := telling(one)) is not None}
        told = await _statistics(peers, list(trials.values()), group, metric)
        for id, one in asked.items():
            found = _plain(told.get(trials.get(id, 0), {}).get(statistic))
            own = name == f"{METRIC}{one.metric}" and one.best_metric is not None
            values[id] = one.best_metric if own else found
        opened -= final
        return values


async def _statistics(peers: Peers, trial_ids: list[int], group: str, name: str) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for start in range(0, len(trial_ids), AT_ONCE):
        ids = trial_ids[start : start + AT_ONCE]
        query = TrialStatistics(trial_ids=ids, group=group, name=name)
        found.update((int(id), told) for id, told in await peers.ask(query))
    return found


def telling(one: Experiment) -> int | None:
    """The trial whose metrics represent the experiment: its best, or its first if there is no best."""
    return one.best_trial or one.first_trial


def _settled(state: State, one: Experiment) -> bool:
    # Paged-out experiments are settled.
    trial = loaded(state.trials, telling(one) or 0)
    return one.ended_at is not None and (trial is None or trial.settled)


def _parts(name: str) -> tuple[str, str, str]:
    """Group, name and statistic.

    `metric.NAME` is the best searcher metric, or another metric's last value.
    """
    if name.startswith(METRIC):
        return "validation", name.removeprefix(METRIC), "last"
    told = _STATISTIC.fullmatch(name)
    if told is None:
        raise ValueError(f"'{name}' is not a metric column")
    return told[1], told[2], told[3]


def _until_now(state: State, name: str, ended: Values) -> Values:
    of = COLUMNS[name].of
    return {id: of(state.experiments[id]) if value is None else value for id, value in ended.items()}


def _getter(name: str) -> Getter:
    if name.startswith(HPARAM):
        path = name.removeprefix(HPARAM).split(".")
        return lambda _, one: hyperparameter(one, path)
    column = COLUMNS[name]
    if column.moves:
        return lambda state, one: None if one.ended_at is None else column.value(state, one)
    return column.value


def hyperparameter(one: Experiment, path: list[str]) -> Any:
    """The constant from the configuration or, for a searched hyperparameter, the best trial's value."""
    found = _within(msgspec.json.decode(one.hyperparameters), path)
    if not isinstance(found, dict):
        return _plain(found)
    if "val" in found:
        return _plain(found["val"])
    return _plain(_within(msgspec.json.decode(one.point), path)) if one.point else None


def _plain(value: Any) -> int | float | str | None:
    """Convert lists and maps to text, so that all values are comparable."""
    return value if value is None or isinstance(value, int | float | str) else json.dumps(value)


def _within(found: Any, path: list[str]) -> Any:
    for part in path:
        found = found.get(part) if isinstance(found, dict) else None
    return found


def hyperparameters(one: Experiment) -> Iterable[str]:
    """Dotted names of the hyperparameters that an experiment sets or searches."""
    return _names(msgspec.json.decode(one.hyperparameters), "")


def _names(found: dict[str, Any], above: str) -> Iterable[str]:
    for name, inner in found.items():
        if isinstance(inner, dict) and "type" not in inner:
            yield from _names(inner, f"{above}{name}.")
        else:
            yield f"{above}{name}"
