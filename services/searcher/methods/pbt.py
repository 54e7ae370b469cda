"""Population-based training: in each round the worst are replaced by children of the best.

After "Population Based Training of Neural Networks" (Jaderberg et al., 2017). Rounds are synchronous: no
trial continues before all have reported, so the order of reports does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

from services.searcher.methods.explore import Explore
from services.searcher.methods.protocol import (
    INVALID_HP_REASONS,
    Close,
    Create,
    Declaration,
    MethodError,
    Operation,
    SearchSettings,
    ValidateAfter,
)
from services.searcher.methods.rng import Rng
from services.searcher.methods.sampling import create_with, sample
from services.searcher.methods.table import Table

MAX_POPULATION = 1_000
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
    def is_done(self) -> bool:
        """Whether nothing more is expected from it in this round."""
        return self.gone or self.metric is not None


class PbtSearch(msgspec.Struct, frozen=True, tag="pbt"):
    """A population of constant size that trains `max_length` in `num_rounds` equal parts."""

    compares_trials: ClassVar[bool] = True
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
        members = [self._create_founder(operations, rng) for _ in range(self.population)]
        return replace(self, members=tuple(members)), operations

    def trial_created(self, request_id: str) -> tuple[PbtSearch, list[Operation]]:
        return self, []

    def validation_completed(
        self, request_id: str, metric: Any, rng: Rng
    ) -> tuple[PbtSearch, list[Operation]]:
        index = self._index(request_id)
        if index is None or self.members[index].is_done:
            raise MethodError(f"trial {request_id} reported a metric that was not requested")
        value = metric if self.smaller_is_better else -metric
        return self._with_member(index, replace(self.members[index], metric=value))._advance(rng)

    def exited_early(self, request_id: str, reason: str, rng: Rng) -> tuple[PbtSearch, list[Operation]]:
        index = self._index(request_id)
        if index is None:
            return self, []
        member = self.members[index]
        if reason in INVALID_HP_REASONS and not member.is_done:
            operations: list[Operation] = []
            return self._with_member(index, self._create_replacement(member, operations, rng)), operations
        return self._with_member(index, replace(member, gone=True))._advance(rng)

    def trial_closed(self, request_id: str, rng: Rng) -> tuple[PbtSearch, list[Operation]]:
        return self, []

    def progress(self, units: Table[float], finished: int) -> float:
        reported = sum(member.is_done for member in self.members)
        return (self.round * self.population + reported) / (self.num_rounds * self.population)

    def _index(self, request_id: str) -> int | None:
        ids = [member.request_id for member in self.members]
        return ids.index(request_id) if request_id in ids else None

    def _with_member(self, index: int, member: Member) -> PbtSearch:
        return replace(self, members=(*self.members[:index], member, *self.members[index + 1 :]))

    def _length_after(self, rounds: int) -> int:
        """Length after this number of rounds."""
        return self.max_length * rounds // self.num_rounds

    def _advance(self, rng: Rng) -> tuple[PbtSearch, list[Operation]]:
        """Begin the next round once all members have reported."""
        if not all(member.is_done for member in self.members):
            return self, []
        alive = [m for m in self.members if not m.gone]
        # Stable: equal metrics keep the order of the members, whatever the order in which they were reported.
        alive.sort(key=lambda m: m.metric if m.metric is not None else 0.0)
        if self.round + 1 == self.num_rounds or not alive:
            finished = replace(self, round=self.num_rounds, members=())
            return finished, [Close(member.request_id) for member in alive]
        return replace(self, round=self.round + 1)._next_round(alive, rng)

    def _next_round(self, alive: Sequence[Member], rng: Rng) -> tuple[PbtSearch, list[Operation]]:
        """A new round of the survivors and of children that replace the others. `alive` is best first."""
        # Those that left are already missing at the bottom, so only the rest of the fraction is cut off.
        exited_count = len(self.members) - len(alive)
        survivors = alive[
            : len(self.members) - max(exited_count, int(len(self.members) * self.truncate_fraction))
        ]
        operations: list[Operation] = [Close(member.request_id) for member in alive[len(survivors) :]]
        end = self._length_after(self.round + 1)
        operations += [ValidateAfter(member.request_id, end - member.born) for member in survivors]
        members = [replace(member, metric=None) for member in survivors]
        for number in range(len(self.members) - len(survivors)):
            # The best first, and around again: with few survivors each gets several children.
            parent = survivors[number % len(survivors)]
            members.append(self._create_child(parent.request_id, parent.hparams, operations, rng))
        return replace(self, members=tuple(members)), operations

    def _create_founder(self, operations: list[Operation], rng: Rng) -> Member:
        created = create_with(sample(self.space, rng), rng)
        operations += [created, ValidateAfter(created.request_id, self._length_after(self.round + 1))]
        return Member(created.request_id, created.hparams)

    def _create_child(
        self, parent: str, inherited: dict[str, Any], operations: list[Operation], rng: Rng
    ) -> Member:
        created = create_with(self.explore.child_of(inherited, self.space, rng), rng)
        # A child's lengths count from zero although its weights have been trained: the script sees a new
        # trial.
        born = self._length_after(self.round)
        length = self._length_after(self.round + 1) - born
        operations += [
            Create(created.request_id, created.seed, created.hparams, parent),
            ValidateAfter(created.request_id, length),
        ]
        return Member(created.request_id, created.hparams, born, parent, inherited)

    def _create_replacement(self, member: Member, operations: list[Operation], rng: Rng) -> Member:
        """Create a replacement for a trial with invalid hyperparameters."""
        if member.parent is None:
            return self._create_founder(operations, rng)
        return self._create_child(member.parent, member.inherited, operations, rng)


def _create(settings: SearchSettings) -> PbtSearch:
    searcher, max_length = settings.searcher, settings.max_length
    population, rounds = searcher["population_size"], searcher["num_rounds"]
    if population > MAX_POPULATION:
        raise MethodError(f"a population of {population} is too large: the most is {MAX_POPULATION}")
    if max_length < rounds:
        raise MethodError(
            f"max_length {max_length} gives {rounds} rounds nothing to train: raise it, or lower num_rounds"
        )
    return PbtSearch(
        settings.space,
        max_length,
        population,
        rounds,
        searcher["replace_function"]["truncate_fraction"],
        Explore(**searcher["explore_function"]),
        settings.smaller_is_better,
    )


METHOD = Declaration(PbtSearch, _create)
