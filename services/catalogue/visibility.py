"""What a session may see of the catalogue; the basis of lists, searches and totals (docs/rights.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TypeVar

from services.catalogue.domain import Allocation, Experiment, State
from services.catalogue.rights import Directory
from services.kit.authz.judge import permitted
from services.people import places, tokens

T = TypeVar("T")


class Sight:
    """What one session may see at one moment."""

    def __init__(self, state: State, session: tokens.Session) -> None:
        directory = Directory(state)
        person = directory.person(session.user)
        grants = list(directory.grants(person.id)) if person is not None else []
        self._state = state
        self.everything = not directory.rbac or (person is not None and person.admin)
        """Whether nothing is hidden from the session."""
        self.everything |= "view" in permitted(grants, 0)
        spaces = {one.workspace_id for one in grants} - {0}
        self._spaces = frozenset(id for id in spaces if "view" in permitted(grants, id))

    def workspace(self, id: int) -> bool:
        """Whether a workspace and its contents are visible."""
        return self.everything or id in self._spaces

    def project(self, id: int) -> bool:
        """Whether a project is visible."""
        if self.everything:
            return True
        known = places.projects(self._state).get(id)
        return known is not None and known.workspace_id in self._spaces

    def projects(self) -> list[int] | None:
        """The visible projects; None if all are."""
        if self.everything:
            return None
        own = {id for space in self._spaces for id in self._state.projects_in.ids(space)}
        first = {places.FIRST} if places.FIRST in self._spaces else set()
        return sorted(own | first)

    def experiment(self, id: int) -> bool:
        """Whether an experiment is visible, or the user's task whose negated number `id` is."""
        if self.everything:
            return True
        if id < 0:
            return self.workspace(self._of_tasks.get(-id, 0))
        known: Experiment | None = self._state.experiments.get(id)
        return known is not None and self.project(known.project_id)

    @cached_property
    def _of_tasks(self) -> dict[int, int]:
        """The workspace of each user's task, by task number."""
        return {one.number: one.workspace_id for one in self._state.tasks.values()}

    def run(self, allocation_id: str) -> bool:
        """Whether a run is visible."""
        if self.everything:
            return True
        thing = Directory(self._state).thing("run", allocation_id)
        return thing is not None and thing.workspace_id in self._spaces

    def held(self, one: Allocation) -> bool:
        """Whether a run is visible, for a record that may not be in memory."""
        return self.experiment(one.experiment_id)

    def only(self, seen: Callable[[T], bool], found: Iterable[T]) -> list[T]:
        """The visible ones among some things."""
        return list(found) if self.everything else [one for one in found if seen(one)]
