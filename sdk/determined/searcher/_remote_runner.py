"""Runs a search method in a task of the cluster and keeps its state in the task's checkpoints."""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from determined import _arguments
from determined.searcher._method import SearchMethod
from determined.searcher._runner import SearchRunner, Wire
from determined.searcher._submission import OPERATIONS_FILE

if TYPE_CHECKING:
    from pathlib import Path

    from determined.core import Context


_SEARCHES = uuid.UUID("6f1b3c1e-0d0e-4c0a-9d3b-8a6e2f5b7c11")
_runs = itertools.count()
"""Counts the searches of this process."""


class RemoteSearchRunner(SearchRunner):
    """Runs a search method inside a task of the cluster, and keeps its state in the task's checkpoints.

    A task that is paused or restarted continues the search.

    Example:
        ```python
        with det.core.init() as core_context:
            runner = searcher.RemoteSearchRunner(TwoTrials(), context=core_context)
            runner.run("config.yaml", model_dir="model")
        ```
    """

    def __init__(self, search_method: SearchMethod, context: Context) -> None:
        """Create a runner.

        Args:
            search_method: The search method.
            context: The Core API of the task, whose checkpoints hold the state.
        """
        super().__init__(search_method)
        _arguments.having("context", context, ("checkpoint",), "what core.init() returns")
        self.context = context

    def run(
        self,
        exp_config: dict[str, Any] | str,
        model_dir: str | None = None,
        includes: Sequence[str | Path] | None = None,
    ) -> int:
        """Create the experiment, or continue the one of the latest checkpoint, and search until the end.

        Args:
            exp_config: The experiment configuration with `searcher.name: custom`, as a dict or the path of a
                YAML file.
            model_dir: Directory with the code of the trials.
            includes: Additional files and directories to send.

        Returns:
            The id of the experiment.

        Raises:
            RuntimeError: If this does not run in a task on a cluster.

        Example:
            ```python
            with det.core.init() as core_context:
                runner = searcher.RemoteSearchRunner(MySearch(), context=core_context)
                runner.run("config.yaml", model_dir=".")
            ```
        """
        from determined import get_cluster_info

        info = get_cluster_info()
        if info is None:
            raise RuntimeError("RemoteSearchRunner runs inside a task; use LocalSearchRunner elsewhere")
        latest = info.latest_checkpoint
        # The count is deterministic, so a restarted task derives the same key for the same search.
        once = uuid.uuid5(_SEARCHES, f"{info.cluster_id} {info.task_id} {next(_runs)}")
        return self._search(
            exp_config, model_dir, includes, once, lambda: None if latest is None else self.load_state(latest)
        )

    def load_state(self, storage_id: str) -> tuple[int, Wire]:
        """Restore the state from a checkpoint.

        Args:
            storage_id: Id of the checkpoint.

        Returns:
            The id of the experiment, and the operations that may not have been posted yet, in the form of
            the REST API.

        Example:
            ```python
            latest = det.get_cluster_info().latest_checkpoint
            experiment_id, prior_operations = runner.load_state(latest)
            ```
        """
        with self.context.checkpoint.restore_path(storage_id) as path:
            self.state, id = self.search_method.load(path)
            return id, json.loads((path / OPERATIONS_FILE).read_text())

    def save_state(self, experiment_id: int, operations: Wire) -> None:
        """Store state and operations as a checkpoint of the task.

        Args:
            experiment_id: Id of the experiment.
            operations: Operations in the form of the REST API.

        Example:
            ```python
            runner.save_state(experiment_id, [operation.to_wire() for operation in operations])
            ```
        """
        steps = self.state.last_event_id or 0
        with self.context.checkpoint.store_path({"steps_completed": steps}) as (path, _):
            self.search_method.save(self.state, path, experiment_id=experiment_id)
            (path / OPERATIONS_FILE).write_text(json.dumps(operations))
