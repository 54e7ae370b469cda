"""What routes answer, for the OpenAPI document: shapes that are told of a route by `answering`.

A shape is a TypedDict. Where what is shown is checked against it by mypy, the function that makes it says so
(`Beside` in `present/experiment.py`); `tests/gateway/test_answers.py` holds what routes really answer to all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_type_hints

from typing_extensions import TypedDict

from services.catalogue.columns import experiments, trials
from services.catalogue.columns.column import Columns, json_types
from services.gateway.determined.present import experiment, trial
from services.gateway.http.records import JobSummary


def of_columns(name: str, columns: Columns, beside: type) -> Any:
    """The shape of a record that is shown by its columns and what is told beside them."""
    return TypedDict(name, json_types(columns) | get_type_hints(beside))  # type: ignore[operator]


if TYPE_CHECKING:
    Experiment = dict[str, Any]
    Trial = dict[str, Any]
else:
    Experiment = of_columns("Experiment", experiments.COLUMNS, experiment.Beside)
    Trial = of_columns("Trial", trials.COLUMNS, trial.Beside)


class Pagination(TypedDict):
    """Which items of a list these are."""

    offset: int
    limit: int
    startIndex: int
    endIndex: int
    total: int


class ExperimentRow(TypedDict, total=False):
    """An experiment of a search, its best trial, and the values of the columns that were asked for."""

    experiment: Experiment
    bestTrial: Trial | None
    values: dict[str, Any]


class FoundExperiments(TypedDict):
    """A page of what was searched for."""

    experiments: list[ExperimentRow]
    pagination: Pagination


class OneExperiment(TypedDict, total=False):
    """One experiment, and its place in the queue while it has one."""

    experiment: Experiment
    jobSummary: JobSummary


class Column(TypedDict):
    """What experiments can be filtered and sorted by."""

    column: str
    location: str
    type: str
    displayName: str
    look: str
    field: str


class ColumnsThere(TypedDict):
    """All columns of a project."""

    columns: list[Column]


def answering(shape: Any) -> dict[str, Any]:
    """Tell of a route what it answers: `@router.get(path, **answering(Trials))`."""
    return {"responses": {200: {"model": shape, "description": "Done"}}}


def answering_page(noun: str, shape: Any) -> dict[str, Any]:
    """The same of a route that answers a page of records under the name `noun`."""
    return answering(TypedDict(f"{shape.__name__}Page", {noun: list[shape], "pagination": Pagination}))  # type: ignore[operator]


def answering_one(noun: str, shape: Any) -> dict[str, Any]:
    """The same of a route that answers one record under the name `noun`."""
    return answering(TypedDict(f"One{shape.__name__}", {noun: shape}))  # type: ignore[operator]
