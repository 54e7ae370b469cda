"""Every point of a grid (searchers spec, section 4)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from services.searcher.methods.protocol import Close, MethodError, Operation, ValidateAfter
from services.searcher.methods.rng import Rng
from services.searcher.methods.sampling import create_with, is_group


class GridSearch(msgspec.Struct, frozen=True, tag="grid"):
    """Trains each point of the grid once, the last one first, at most `max_concurrent` at once (0: all)."""

    space: dict[str, Any]
    max_length: int
    max_concurrent: int
    points: int
    left: int
    """Points not handed out; the next one is number `left - 1` in grid order."""

    @classmethod
    def over(cls, space: dict[str, Any], max_length: int, max_concurrent: int) -> GridSearch:
        """A search over all points of a space; raises `MethodError` when there is none."""
        count = math.prod(len(values) for _, values in axes(space))
        if not space or not count:
            raise MethodError("the grid has no points: give at least one hyperparameter")
        return cls(space, max_length, max_concurrent, count, count)

    def initial(self, rng: Rng) -> tuple[GridSearch, list[Operation]]:
        return self._create(min(self.left, self.max_concurrent) if self.max_concurrent else self.left, rng)

    def _create(self, count: int, rng: Rng) -> tuple[GridSearch, list[Operation]]:
        operations: list[Operation] = []
        for number in range(self.left - 1, self.left - 1 - count, -1):
            made = create_with(point(self.space, number), rng)
            operations += [made, ValidateAfter(made.request_id, self.max_length), Close(made.request_id)]
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

    def progress(self, units: dict[str, float], closed: frozenset[str]) -> float:
        done = sum(self.max_length if id in closed else trained for id, trained in units.items())
        return done / (self.max_length * self.points)


Path = tuple[str, ...]


def axes(space: Mapping[str, Any], under: Path = ()) -> list[tuple[Path, list[Any]]]:
    """An axis per leaf, names ascending, groups depth-first."""
    found: list[tuple[Path, list[Any]]] = []
    for name in sorted(space):
        value = space[name]
        if is_group(value):
            found += axes(value, (*under, name))
        else:
            found.append(((*under, name), axis(value)))
    return found


def axis(spec: Any) -> list[Any]:
    """The values of one hyperparameter on the grid."""
    if not isinstance(spec, Mapping):
        return [spec]
    match spec["type"]:
        case "const":
            return [spec["val"]]
        case "categorical":
            return list(spec["vals"])
        case "int":
            low, high = int(spec["minval"]), int(spec["maxval"])
            count = min(_count(spec), high - low + 1)
            return [_round(value) for value in _spread(low, high, count)]
        case "double":
            return _spread(spec["minval"], spec["maxval"], _count(spec))
        case "log":
            return [float(spec["base"] ** e) for e in _spread(spec["minval"], spec["maxval"], _count(spec))]
        case other:
            raise MethodError(f"unknown hyperparameter type '{other}'")


def _count(spec: Mapping[str, Any]) -> int:
    if spec.get("count") is None:
        raise MethodError("grid search is in use but count was not provided")
    return int(spec["count"])


def _spread(low: float, high: float, count: int) -> list[float]:
    if count == 1:
        return [(low + high) / 2]
    return [low + i * (high - low) / (count - 1) for i in range(count)]


def _round(value: float) -> int:
    """Half away from zero, unlike `round`."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def point(space: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Point `number` of the grid, the first axis slowest."""
    chosen: list[tuple[Path, Any]] = []
    for path, values in reversed(axes(space)):
        number, index = divmod(number, len(values))
        chosen.append((path, values[index]))
    hparams: dict[str, Any] = {}
    for path, value in reversed(chosen):
        group = hparams
        for name in path[:-1]:
            group = group.setdefault(name, {})
        group[path[-1]] = value
    return _with_empty_groups(space, hparams)


def _with_empty_groups(space: Mapping[str, Any], hparams: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _with_empty_groups(space[name], hparams.get(name, {}))
        if is_group(space[name])
        else hparams[name]
        for name in sorted(space)
    }


def grid(space: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All points in grid order."""
    total = math.prod(len(values) for _, values in axes(space))
    return [point(space, number) for number in range(total)]
