"""Population-based training: in each round the worst are replaced by children of the best.

After "Population Based Training of Neural Networks" (Jaderberg et al., 2017). Rounds are synchronous: no
trial continues before all have reported, so the order of reports does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from services.searcher.methods.explore import Explore
from services.searcher.methods.protocol import (
    INVALID,
    Close,
    Create,
    MethodError,
    Operation,
    ValidateAfter,
)
from services.searcher.methods.rng import Rng
from services.searcher.methods.sampling import create_with, sample
from services.searcher.methods.table import Table

LARGEST = 1_000
"""Maximum size of a population, since each report examines all members."""
replace = msgspec.structs.replace


class Member(msgspec.Struct, frozen=True):
    """A trial that takes part in the current round."""

    request_id: str
    hparams: dict[str, Any]
    born: int = 0
    """Length that its ancestors had trained when it was created; its own lengths count from there."""
    parent: str | None = None
    inherited: dict[str, Any] = {}
    """Hyperparameters of its parent."""
    metric: float | None = None
    """Result in this round; smaller is better here."""
    gone: bool = False
    """It exited early and will rank last in this round."""

    @property
    def waits(self) -> bool:
        """Whether nothing more is expected from it in this round."""
        return self.gone or self.metric is not None


class PbtSearch(msgspec.Struct, frozen=True, tag="pbt"):
    """A population of constant size that trains `max_length` in `num_rounds` equal parts."""

    space: dict[str, Any]
    max_length: int
    population: int
    num_rounds: int
    truncate_fraction: float
    explore: Explore
    smaller_is_better: bool
    round: int = 0
    """Number of completed rounds."""
    members: tuple[Member, ...] = ()

    def initial(self, rng: Rng) -> tuple[PbtSearch, list[Operation]]:
        operations: list[Operation] = []
        members = [self._founder(operations, rng) for _ in range(self.population)]
        return replace(self, members=tuple(members)), operations

    def trial_created(self, request_id: str) -> tuple[PbtSearch, list[Operation]]:
        return self, []

    def validation_completed(
        self, request_id: str, metric: Any, rng: Rng
    ) -> tuple[PbtSearch, list[Operation]]:
        index = self._index(request_id)
        if index is None or self.members[index].waits:
            raise MethodError(f"trial {request_id} reported a metric that was not requested")
        value = metric if self.smaller_is_better else -metric
        return self._with(index, replace(self.members[index], metric=value))._go_on(rng)

    def exited_early(self, request_id: str, reason: str, rng: Rng) -> tuple[PbtSearch, list[Operation]]:
        index = self._index(request_id)
        if index is None:
            return self, []
        member = self.members[index]
        if reason in INVALID and not member.waits:
            operations: list[Operation] = []
            return self._with(index, self._again(member, operations, rng)), operations
        return self._with(index, replace(member, gone=True))._go_on(rng)

    def trial_closed(self, request_id: str, rng: Rng) -> tuple[PbtSearch, list[Operation]]:
        return self, []

    def progress(self, units: Table[float], finished: int) -> float:
        reported = sum(member.waits for member in self.members)
        return (self.round * self.population + reported) / (self.num_rounds * self.population)

    def _index(self, request_id: str) -> int | None:
        ids = [member.request_id for member in self.members]
        return ids.index(request_id) if request_id in ids else None

    def _with(self, index: int, member: Member) -> PbtSearch:
        return replace(self, members=(*self.members[:index], member, *self.members[index + 1 :]))

    def _trained(self, rounds: int) -> int:
        """Length after this number of rounds."""
        return self.max_length * rounds // self.num_rounds

    def _go_on(self, rng: Rng) -> tuple[PbtSearch, list[Operation]]:
        """Begin the next round once all members have reported."""
        if not all(member.waits for member in self.members):
            return self, []
        alive = [m for m in self.members if not m.gone]
        alive.sort(key=lambda m: m.metric if m.metric is not None else 0.0)
        if self.round + 1 == self.num_rounds or not alive:
            over = replace(self, round=self.num_rounds, members=())
            return over, [Close(member.request_id) for member in alive]
        return replace(self, round=self.round + 1)._renew(alive, rng)

    def _renew(self, alive: Sequence[Member], rng: Rng) -> tuple[PbtSearch, list[Operation]]:
        """A new round of the survivors and of children that replace the others. `alive` is best first."""
        gone = len(self.members) - len(alive)
        stay = alive[: len(self.members) - max(gone, int(len(self.members) * self.truncate_fraction))]
        operations: list[Operation] = [Close(member.request_id) for member in alive[len(stay) :]]
        end = self._trained(self.round + 1)
        operations += [ValidateAfter(member.request_id, end - member.born) for member in stay]
        members = [replace(member, metric=None) for member in stay]
        for number in range(len(self.members) - len(stay)):
            parent = stay[number % len(stay)]
            members.append(self._child(parent.request_id, parent.hparams, operations, rng))
        return replace(self, members=tuple(members)), operations

    def _founder(self, operations: list[Operation], rng: Rng) -> Member:
        made = create_with(sample(self.space, rng), rng)
        operations += [made, ValidateAfter(made.request_id, self._trained(self.round + 1))]
        return Member(made.request_id, made.hparams)

    def _child(self, parent: str, inherited: dict[str, Any], operations: list[Operation], rng: Rng) -> Member:
        made = create_with(self.explore.child_of(inherited, self.space, rng), rng)
        born = self._trained(self.round)
        length = self._trained(self.round + 1) - born
        operations += [
            Create(made.request_id, made.seed, made.hparams, parent),
            ValidateAfter(made.request_id, length),
        ]
        return Member(made.request_id, made.hparams, born, parent, inherited)

    def _again(self, member: Member, operations: list[Operation], rng: Rng) -> Member:
        """Create a replacement for a trial with invalid hyperparameters."""
        if member.parent is None:
            return self._founder(operations, rng)
        return self._child(member.parent, member.inherited, operations, rng)


def pbt(
    space: dict[str, Any], searcher: Mapping[str, Any], max_length: int, smaller_is_better: bool
) -> PbtSearch:
    """The search that a configuration asks for. Raises `MethodError` for rounds without training."""
    population, rounds = searcher["population_size"], searcher["num_rounds"]
    if population > LARGEST:
        raise MethodError(f"a population of {population} is too large: the most is {LARGEST}")
    if max_length < rounds:
        raise MethodError(
            f"max_length {max_length} gives {rounds} rounds nothing to train: raise it, or lower num_rounds"
        )
    return PbtSearch(
        space,
        max_length,
        population,
        rounds,
        searcher["replace_function"]["truncate_fraction"],
        Explore(**searcher["explore_function"]),
        smaller_is_better,
    )
