"""Runs a search method in this process and keeps its state in a directory."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from determined import _arguments
from determined.searcher._method import SearchMethod
from determined.searcher._runner import SearchRunner, Wire
from determined.searcher._submission import OPERATIONS_FILE


class LocalSearchRunner(SearchRunner):
    """Runs a search method in this process. After an interruption, the same call continues the search.

    Example:
        ```python
        runner = searcher.LocalSearchRunner(TwoTrials(), searcher_dir=Path("my_search"))
        experiment_id = runner.run("config.yaml", model_dir=".")     # with searcher: {name: custom, ...}
        ```
    """

    def __init__(self, search_method: SearchMethod, searcher_dir: Path | None = None) -> None:
        """Create a runner.

        Args:
            search_method: The search method.
            searcher_dir: Directory for the state of the search; by default the working directory. If it
                already holds a state, `run()` continues that search.
        """
        super().__init__(search_method)
        if searcher_dir is not None:
            _arguments.path("searcher_dir", searcher_dir)
        self.searcher_dir = Path(searcher_dir) if searcher_dir is not None else Path.cwd()

    def run(
        self,
        exp_config: dict[str, Any] | str,
        model_dir: str | None = None,
        includes: Sequence[str | Path] | None = None,
    ) -> int:
        """Create the experiment, or continue the one in the directory, and search until the end.

        Args:
            exp_config: The experiment configuration with `searcher.name: custom`, as a dict or the path of a
                YAML file.
            model_dir: Directory with the code of the trials.
            includes: Additional files and directories to send.

        Returns:
            The id of the experiment.

        Example:
            ```python
            runner = searcher.LocalSearchRunner(MyMethod(), searcher_dir=Path("state"))
            experiment_id = runner.run("config.yaml", model_dir=".")
            ```
        """
        once = uuid.uuid4() if self._is_kept() else self._begun()
        return self._search(
            exp_config, model_dir, includes, once, lambda: self._taken_up() if self._is_kept() else None
        )

    def _taken_up(self) -> tuple[int, Wire]:
        # By the public method: subclasses override it, as those written for 0.25 do.
        return self.load_state(self._loaded()[0])

    def _begun(self) -> uuid.UUID:
        """Return the idempotency key of a new search, stored until its first state is saved."""
        try:
            return uuid.UUID(self._beginning.read_text())
        except (FileNotFoundError, ValueError):
            made = uuid.uuid4()
            self.searcher_dir.mkdir(parents=True, exist_ok=True)
            self._beginning.write_text(str(made))
            return made

    @property
    def _beginning(self) -> Path:
        return self.searcher_dir / "beginning"

    def _is_kept(self) -> bool:
        return any(folder.exists() for folder in self._folders())

    def save_state(self, experiment_id: int, operations: Wire) -> None:
        """Write state and operations to the directory.

        The previous state is kept until the new one is complete.

        Args:
            experiment_id: Id of the experiment.
            operations: Operations in the form of the REST API.

        Example:
            ```python
            runner.save_state(experiment_id, [operation.to_wire() for operation in operations])
            ```
        """
        fresh, (folder, old) = self.searcher_dir / "state.new", self._folders()
        # Left over by a process that was killed while it wrote; it may be incomplete.
        shutil.rmtree(fresh, ignore_errors=True)
        self.search_method.save(self.state, fresh, experiment_id=experiment_id)
        (fresh / OPERATIONS_FILE).write_text(json.dumps(operations))
        if folder.exists():
            shutil.rmtree(old, ignore_errors=True)
            # Between the two renames there is only `state.old`, from which the next process continues.
            folder.rename(old)
        fresh.rename(folder)
        # Where scripts written for 0.25 look for it.
        (self.searcher_dir / "experiment_id.txt").write_text(str(experiment_id))
        # From now on the saved state names the experiment.
        self._beginning.unlink(missing_ok=True)

    def load_state(self, experiment_id: int) -> tuple[int, Wire]:
        """Restore the state from the directory.

        Args:
            experiment_id: Id of the experiment that the state must belong to.

        Returns:
            The id of the experiment, and the operations that may not have been posted yet, in the form of
            the REST API.

        Raises:
            FileNotFoundError: If the directory holds no state.
            ValueError: If it holds the state of another experiment.

        Example:
            ```python
            experiment_id, prior_operations = runner.load_state(7)
            print(runner.state.trials_closed)
            ```
        """
        held_id, operations = self._loaded()
        if held_id != experiment_id:
            raise ValueError(
                f"{self.searcher_dir} holds the search of experiment {held_id}, not of {experiment_id}"
            )
        return held_id, operations

    def _loaded(self) -> tuple[int, Wire]:
        newest = next((folder for folder in self._folders() if folder.exists()), self._folders()[0])
        self.state, id = self.search_method.load(newest)
        return id, json.loads((newest / OPERATIONS_FILE).read_text())

    def _folders(self) -> tuple[Path, Path]:
        """Return the state directories. The first that exists holds the newest complete state."""
        return self.searcher_dir / "state", self.searcher_dir / "state.old"
