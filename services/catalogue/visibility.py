"""What a session may see of the catalogue; the basis of lists, searches and totals (docs/rights.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TypeVar

from services.catalogue.domain import Allocation, Experiment, State, TaskOwner
from services.catalogue.rights import Directory
from services.kit.authz.access_check import granted_permissions
from services.people import tokens, workspace_records

T = TypeVar("T")


class Visibility:
    """What one session may see at one moment."""

    def __init__(self, state: State, session: tokens.Session) -> None:
        directory = Directory(state)
        person = directory.person(session.user)
        grants = list(directory.grants(person.id)) if person is not None else []
        self._state = state
        self.includes_everything = not directory.rbac or (person is not None and person.admin)
        """Whether nothing is hidden from the session."""
        # Workspace 0 stands for grants that hold everywhere.
        self.includes_everything |= "view" in granted_permissions(grants, 0)
        # The grants are evaluated once per request here, because a list asks for thousands of things.
        spaces = {grant.workspace_id for grant in grants} - {0}
        self._workspace_ids = frozenset(id for id in spaces if "view" in granted_permissions(grants, id))

    def includes_workspace(self, id: int) -> bool:
        """Whether a workspace and its contents are visible."""
        return self.includes_everything or id in self._workspace_ids

    def includes_project(self, id: int) -> bool:
        """Whether a project is visible."""
        if self.includes_everything:
            return True
        project = workspace_records.projects(self._state).get(id)
        return project is not None and project.workspace_id in self._workspace_ids

    def visible_projects(self) -> list[int] | None:
        """The visible projects; None if all are."""
        if self.includes_everything:
            return None
        project_ids = {id for space in self._workspace_ids for id in self._state.projects_in.ids(space)}
        # The first project exists without a record of its own, so the index does not name it.
        first = {workspace_records.FIRST} if workspace_records.FIRST in self._workspace_ids else set()
        return sorted(project_ids | first)

    def includes_experiment(self, id: int) -> bool:
        """Whether an experiment is visible, or the user's task whose negated number `id` is."""
        if self.includes_everything:
            return True
        if id < 0:
            # A forgotten task has no workspace here, and 0 is visible only to those who see everything.
            return self.includes_workspace(self._task_workspaces.get(-id, 0))
        experiment: Experiment | None = self._state.experiments.get(id)
        return experiment is not None and self.includes_project(experiment.project_id)

    @cached_property
    def _task_workspaces(self) -> dict[int, int]:
        """The workspace of each user's task, by task number."""
        return {task.number: task.workspace_id for task in self._state.tasks.values()}

    def includes_run(self, allocation_id: str) -> bool:
        """Whether a run is visible."""
        if self.includes_everything:
            return True
        target = Directory(self._state).target("run", allocation_id)
        return target is not None and target.workspace_id in self._workspace_ids

    def includes_allocation(self, allocation: Allocation) -> bool:
        """Whether a run is visible, for a record that may not be in memory."""
        return self.includes_use(allocation.experiment_id, allocation.task_owner)

    def includes_use(self, experiment_id: int, task_owner: TaskOwner | None) -> bool:
        """Whether the use of slots is visible: that of an experiment, or of a task, forgotten or not."""
        owner = task_owner or self._state.deleted_experiments.get(experiment_id)
        if owner is not None and experiment_id not in self._state.experiments:
            return self.includes_workspace(owner.workspace_id)
        return self.includes_experiment(experiment_id)

    def filter_visible(self, is_visible: Callable[[T], bool], items: Iterable[T]) -> list[T]:
        """The visible ones among some things."""
        return list(items) if self.includes_everything else [item for item in items if is_visible(item)]
