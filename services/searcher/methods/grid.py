"""Every point of a grid (searchers spec, section 4)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec

from det_contracts.expconf import has_count, is_group, leaves
from services.searcher.methods.protocol import (
    Close,
    Declaration,
    MethodError,
    Operation,
    SearchSettings,
    ValidateAfter,
    check_trial_count,
)
from services.searcher.methods.rng import Rng
from services.searcher.methods.sampling import create_with
from services.searcher.methods.table import Table

MAX_POINTS = 1_000_000_000


class GridSearch(msgspec.Struct, frozen=True, tag="grid"):
    """Trains each grid point once, the last one first, at most `max_concurrent` at once (0: all)."""

    compares_trials: ClassVar[bool] = False
    space: dict[str, Any]
    max_length: int
    max_concurrent: int
    points: int
    left: int
    """Points not handed out yet. The next one is number `left - 1` in grid order."""

    @classmethod
    def of_space(cls, space: dict[str, Any], max_length: int, max_concurrent: int) -> GridSearch:
        """A search over all points of a space. Raises `MethodError` if there are none."""
        count = point_count(space)
        if not count:
            raise MethodError("the grid has no points: give at least one hyperparameter")
        if count > MAX_POINTS:
            raise MethodError(f"the grid has {count} points, the most is {MAX_POINTS}: lower some count")
        return cls(space, max_length, max_concurrent, count, count)

    def initial(self, rng: Rng) -> tuple[GridSearch, list[Operation]]:
        count = min(self.left, self.max_concurrent) if self.max_concurrent else self.left
        check_trial_count(count)
        return self._create(count, rng)

    def _create(self, count: int, rng: Rng) -> tuple[GridSearch, list[Operation]]:
        operations: list[Operation] = []
        # From the end, as 0.25 takes them.
        for number in range(self.left - 1, self.left - 1 - count, -1):
            created = create_with(point_at(self.space, number), rng)
            operations += [
                created,
                ValidateAfter(created.request_id, self.max_length),
                Close(created.request_id),
            ]
        return msgspec.structs.replace(self, left=self.left - count), operations

    def trial_created(self, request_id: str) -> tuple[GridSearch, list[Operation]]:
        return self, []

    def validation_completed(
        self, request_id: str, metric: Any, rng: Rng
    ) -> tuple[GridSearch, list[Operation]]:
        return self, []

    def exited_early(self, request_id: str, reason: str, rng: Rng) -> tuple[GridSearch, list[Operation]]:
        return self, []

    def trial_closed(self, request_id: str, rng: Rng) -> tuple[GridSearch, list[Operation]]:
        return self._create(1, rng) if self.left else (self, [])

    def progress(self, units: Table[float], finished: int) -> float:
        done = self.max_length * finished + sum(units.values())
        return done / (self.max_length * self.points)


def point_count(space: dict[str, Any]) -> int:
    """Number of points of a grid over the space; 0 without hyperparameters."""
    return math.prod(axis_size(spec) for _, spec in leaves(space)) if space else 0


def point_at(space: dict[str, Any], number: int) -> dict[str, Any]:
    """Point `number` of the grid.

    The grid has one axis per leaf, names ascending and groups depth-first; the first axis varies slowest.
    """
    indexes: list[int] = []
    for size in reversed([axis_size(spec) for _, spec in leaves(space)]):
        number, index = divmod(number, size)
        indexes.append(index)
    return _point_values(space, reversed(indexes))


def _point_values(space: dict[str, Any], indexes: Iterator[int]) -> dict[str, Any]:
    return {
        name: _point_values(space[name], indexes)
        if is_group(space[name])
        else axis_value(space[name], next(indexes))
        for name in sorted(space)
    }


def axis_size(spec: Any) -> int:
    """Number of values of one hyperparameter on the grid."""
    match spec:
        case {"type": "categorical", "vals": vals}:
            return len(vals)
        case {"type": "int"}:
            return min(_count(spec), int(spec["maxval"]) - int(spec["minval"]) + 1)
        case {"type": "double" | "log"}:
            return _count(spec)
    return 1


def axis_value(spec: Any, index: int) -> Any:
    """The value of one hyperparameter at an index of its axis, from 0."""
    match spec:
        case {"type": "const", "val": value}:
            return value
        case {"type": "categorical", "vals": vals}:
            return vals[index]
        case {"type": "int"}:
            return _round_half_up(_interpolate(spec, index))
        case {"type": "double"}:
            return _interpolate(spec, index)
        case {"type": "log", "base": base}:
            return float(base ** _interpolate(spec, index))
        case {"type": other}:
            raise MethodError(f"unknown hyperparameter type '{other}'")
    return spec


def _count(spec: dict[str, Any]) -> int:
    if not has_count(spec):
        raise MethodError("grid search is in use but count was not provided")
    return int(spec["count"])


def _interpolate(spec: dict[str, Any], index: int) -> float:
    low, high, size = spec["minval"], spec["maxval"], axis_size(spec)
    return float((low + high) / 2 if size == 1 else low + index * (high - low) / (size - 1))


def _round_half_up(value: float) -> int:
    """Round half away from zero, unlike `round`."""
    below = math.floor(abs(value))
    nearest = below + (abs(value) - below >= 0.5)
    return nearest if value >= 0 else -nearest


def _create(settings: SearchSettings) -> GridSearch:
    limit = settings.searcher["max_concurrent_trials"]
    return GridSearch.of_space(settings.space, settings.max_length, limit)


METHOD = Declaration(GridSearch, _create)
