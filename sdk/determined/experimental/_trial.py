"""A trial in the client (client spec, section 2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from determined import _arguments
from determined.experimental import _checkpoint, _metrics, _ranking
from determined.experimental._checkpoint import Checkpoint
from determined.experimental._enums import (
    CheckpointOrderBy,
    CheckpointSortBy,
    CheckpointState,
    LogLevel,
    on_the_wire,
)
from determined.transport import log_stream
from determined.transport.pages import read_all
from determined.transport.rest import AnySession, speaking


class TrialReference:
    """A trial, as returned by `client.get_trial()`. Holds only the id; other data is read on request.

    Example:
        ```python
        trial = client.get_trial(12)
        for report in trial.stream_validation_metrics():
            print(report.steps_completed, report.metrics)
        path = trial.top_checkpoint().download()
        ```
    """

    def __init__(self, trial_id: int, session: AnySession) -> None:
        self._id = trial_id
        self._session = speaking(session)

    @property
    def id(self) -> int:
        """The id of the trial.

        Example:
            ```python
            ids = [trial.id for trial in client.get_experiment(7).get_trials()]
            ```
        """
        return self._id

    def __repr__(self) -> str:
        return f"Trial(id={self.id})"

    def logs(
        self,
        follow: bool = False,
        *,
        head: int | None = None,
        tail: int | None = None,
        container_ids: list[str] | None = None,
        rank_ids: list[int] | None = None,
        stdtypes: list[str] | None = None,
        min_level: LogLevel | str | None = None,
    ) -> Iterator[str]:
        """Return the lines of the trial's log, read as you iterate. Each line ends in a newline.

        Args:
            follow: Keep reading until the trial has ended. Cannot be combined with `head` or `tail`.
            head: Return only the first `head` lines. Cannot be combined with `tail`.
            tail: Return only the last `tail` lines.
            container_ids: Only lines of these containers.
            rank_ids: Only lines of these ranks.
            stdtypes: Only lines of these streams: `stdout`, `stderr`.
            min_level: Only lines of at least this level: a `LogLevel` or its name, such as `"WARNING"`.

        Returns:
            An iterator over lines, oldest first.

        Raises:
            ValueError: If more than one of `follow`, `head` and `tail` is given, or a number of lines is
                negative, or there is no such level.

        Example:
            ```python
            for line in client.get_trial(7).logs(tail=20):
                print(line, end="")
            ```
        """
        _check_extent(follow, head, tail)
        filters = {"containerIds": container_ids, "rankIds": rank_ids, "stdtypes": stdtypes}
        params: dict[str, Any] = {name: value for name, value in filters.items() if value is not None}
        if min_level is not None:
            params["levels"] = _levels_from(min_level)
        return self._lines(follow, head, tail, params)

    def kill(self) -> None:
        """End the trial immediately. Its experiment continues.

        Example:
            ```python
            client.get_trial(12).kill()
            ```
        """
        self._session.post(f"/api/v1/trials/{self.id}/kill")

    def top_checkpoint(self, sort_by: str | None = None, smaller_is_better: bool | None = None) -> Checkpoint:
        """Return the best checkpoint of the trial.

        Args:
            sort_by: Name of a validation metric. Give its direction too. Default: the searcher metric, in
                its direction.
            smaller_is_better: Whether smaller values of `sort_by` are better.

        Returns:
            A checkpoint that is completed.

        Raises:
            AssertionError: If only one of the two is given.
            ValueError: If the trial has no completed checkpoint.

        Example:
            ```python
            path = client.get_trial(12).top_checkpoint("accuracy", smaller_is_better=False).download()
            ```
        """
        return self.select_checkpoint(best=True, sort_by=sort_by, smaller_is_better=smaller_is_better)

    def select_checkpoint(
        self,
        latest: bool = False,
        best: bool = False,
        uuid: str | None = None,
        sort_by: str | None = None,
        smaller_is_better: bool | None = None,
    ) -> Checkpoint:
        """Return one checkpoint of the trial. Give exactly one of `latest`, `best` and `uuid`.

        Args:
            latest: Select the checkpoint with the most batches trained.
            best: Select the checkpoint with the best value of a validation metric.
            uuid: Select the checkpoint with this id, even if it belongs to another trial.
            sort_by: With `best`, the name of the metric. Give its direction too. Default: the searcher
                metric, in its direction.
            smaller_is_better: Whether smaller values of `sort_by` are better.

        Returns:
            The checkpoint.

        Raises:
            AssertionError: The arguments contradict each other.
            NotFoundException: There is no checkpoint with this `uuid`.
            ValueError: The trial has no completed checkpoint.

        Example:
            ```python
            path = client.get_trial(12).select_checkpoint(latest=True).download()
            ```
        """
        _check_selection(latest, best, uuid, sort_by, smaller_is_better)
        if uuid is not None:
            # Also one of another trial, as scripts of 0.25 expect.
            return _checkpoint.get(self._session, uuid)
        if latest:
            candidates = sorted(self._completed(), key=_batches, reverse=True)
        else:
            order = None if sort_by is None else _ranking.Order(sort_by, bool(smaller_is_better))
            candidates = self._ranked(self._completed(), order)
        if not candidates:
            raise ValueError(f"trial {self.id} has no completed checkpoint")
        return candidates[0]

    def get_checkpoints(
        self, sort_by: str | CheckpointSortBy | None = None, order_by: CheckpointOrderBy | None = None
    ) -> list[Checkpoint]:
        """Return all checkpoints of the trial, including deleted ones.

        Args:
            sort_by: Sort key: a `CheckpointSortBy` or the name of a validation metric. Default: the searcher
                metric, best first.
            order_by: Sort direction. Give it together with `sort_by`.

        Returns:
            The checkpoints; empty if there are none.

        Raises:
            AssertionError: If only one of the two is given.

        Example:
            ```python
            for checkpoint in client.get_trial(12).get_checkpoints():  # best first
                print(checkpoint.uuid, checkpoint.state)
            ```
        """
        if (sort_by is None) != (order_by is None):
            raise AssertionError("sort_by and order_by are given together or not at all")
        if isinstance(sort_by, CheckpointSortBy) and order_by is not None:
            return self._checkpoints(
                sortBy=on_the_wire("sort_by", sort_by), orderBy=on_the_wire("order_by", order_by)
            )
        ascending = order_by is CheckpointOrderBy.ASC
        order = None if sort_by is None else _ranking.Order(str(sort_by), ascending)
        return self._ranked(self._checkpoints(), order)

    def stream_training_metrics(self) -> Iterator[_metrics.TrainingMetrics]:
        """Return the trial's reports of training metrics, ordered by run and steps, read as they are
        iterated.

        Returns:
            One record per report.

        Example:
            ```python
            for report in client.get_trial(12).stream_training_metrics():
                print(report.steps_completed, report.metrics)
            ```
        """
        return _metrics.stream_training(self._session, [self.id])

    def stream_validation_metrics(self) -> Iterator[_metrics.ValidationMetrics]:
        """Return the trial's validation metric reports, ordered by run and steps, read as you iterate.

        Returns:
            One record per report.

        Example:
            ```python
            for report in client.get_trial(12).stream_validation_metrics():
                print(report.steps_completed, report.metrics)
            ```
        """
        return _metrics.stream_validation(self._session, [self.id])

    def _lines(
        self, follow: bool, head: int | None, tail: int | None, params: dict[str, Any]
    ) -> Iterator[str]:
        for record in self._records(follow, head, tail, params):
            yield record["message"].removesuffix("\n") + "\n"

    def _records(
        self, follow: bool, head: int | None, tail: int | None, params: dict[str, Any]
    ) -> Iterable[dict[str, Any]]:
        source = log_stream.trial(self.id)
        if follow:
            return log_stream.follow(self._session, source, params)
        if head == 0 or tail == 0:
            return ()
        if tail is not None:
            # A limit counts from the start of the order that is asked for.
            newest_first = {**params, "limit": tail, "orderBy": "ORDER_BY_DESC"}
            return reversed(list(log_stream.read(self._session, source, newest_first)))
        if head is not None:
            params["limit"] = head
        return log_stream.read(self._session, source, params)

    def _checkpoints(self, **params: Any) -> list[Checkpoint]:
        path = f"/api/v1/trials/{self.id}/checkpoints"
        checkpoints = read_all(self._session, path, "checkpoints", params)
        return [_checkpoint.from_wire(self._session, checkpoint) for checkpoint in checkpoints]

    def _completed(self) -> list[Checkpoint]:
        return self._checkpoints(states=CheckpointState.COMPLETED.value)

    def _ranked(self, checkpoints: list[Checkpoint], order: _ranking.Order | None) -> list[Checkpoint]:
        """Sort by the given metric, or by the searcher metric, which every checkpoint of a trial records."""
        trained = [training.training for training in checkpoints if training.training is not None]
        if order is None and trained:
            order = _ranking.of_searcher(trained[0].experiment_config)
        return checkpoints if order is None else _ranking.best_first(checkpoints, order)


def _check_extent(follow: bool, head: int | None, tail: int | None) -> None:
    if sum((bool(follow), head is not None, tail is not None)) > 1:
        raise ValueError("give at most one of follow, head and tail")
    for name, value in (("head", head), ("tail", tail)):
        if value is not None and value < 0:
            raise ValueError(f"{name} is a number of lines, {value} is negative")


def _check_selection(
    latest: bool, best: bool, uuid: str | None, sort_by: str | None, smaller_is_better: bool | None
) -> None:
    criteria = sum((bool(latest), bool(best), uuid is not None))
    if criteria != 1:
        raise AssertionError("give exactly one of latest, best and uuid")
    if (sort_by is None) != (smaller_is_better is None):
        raise AssertionError("sort_by and smaller_is_better are given together or not at all")
    if sort_by is not None and not best:
        raise AssertionError("sort_by and smaller_is_better go with best only")


def _levels_from(least: LogLevel | str) -> list[str]:
    levels = list(LogLevel)
    named = LogLevel.__members__.get(least.upper(), least) if isinstance(least, str) else least
    least = _arguments.member("min_level", named, LogLevel)
    return [level.value for level in levels[levels.index(least) :]]


def _batches(checkpoint: Checkpoint) -> int:
    return int(checkpoint.metadata.get("steps_completed") or 0)
