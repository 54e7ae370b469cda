"""Response shapes for the OpenAPI document. Routes declare theirs with `response_schema`.

A shape is a TypedDict. Where mypy can check the returned value against the shape, the function that builds
the value declares it as its return type (`ExtraFields` in `present/experiment.py`).
`tests/gateway/test_answers.py` checks the actual answers of all routes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_type_hints

from starlette.responses import Response
from typing_extensions import TypedDict

from services.catalogue.columns import experiments, trials
from services.catalogue.columns.column import Columns, json_types
from services.rest_routes.present import experiment, trial
from services.rest_routes.present.records import JobSummary, User


def record_shape(name: str, columns: Columns, extra_fields: type) -> Any:
    """Return the shape of a record made of `columns` plus the fields of `extra_fields`."""
    return TypedDict(name, json_types(columns) | get_type_hints(extra_fields))  # type: ignore[operator]


if TYPE_CHECKING:
    Experiment = dict[str, Any]
    Trial = dict[str, Any]
else:
    Experiment = record_shape("Experiment", experiments.COLUMNS, experiment.ExtraFields)
    Trial = record_shape("Trial", trials.COLUMNS, trial.ExtraFields)


class Pagination(TypedDict):
    """Which items of a list a page contains."""

    offset: int
    limit: int
    startIndex: int
    endIndex: int
    total: int


class ExperimentRow(TypedDict, total=False):
    """An experiment found by a search, its best trial, and the values of the requested columns."""

    experiment: Experiment
    bestTrial: Trial | None
    values: dict[str, Any]


class FoundExperiments(TypedDict):
    """One page of search results."""

    experiments: list[ExperimentRow]
    pagination: Pagination


class OneExperiment(TypedDict, total=False):
    """One experiment, with its place in the queue while it has one."""

    experiment: Experiment
    jobSummary: JobSummary


class Access(TypedDict):
    """What a user may do: names of permissions, for each thing and in addition for some."""

    rbac: bool
    everywhere: list[str]
    own: list[str]
    workspaces: dict[str, list[str]]


class Me(TypedDict):
    """The user who owns the token, and what this user may do."""

    user: User
    access: Access


class Column(TypedDict):
    """A column by which experiments can be filtered and sorted."""

    column: str
    location: str
    type: str
    displayName: str
    look: str
    field: str


class ColumnsThere(TypedDict):
    """All columns of a project."""

    columns: list[Column]


def response_schema(shape: Any) -> dict[str, Any]:
    """Declare what a route answers: `@router.get(path, **response_schema(Trials))`."""
    return {"responses": {200: {"model": shape, "description": "Done"}}}


def media_schema(*media_types: str) -> dict[str, Any]:
    """Declare that a route answers text or files of these media types, and no JSON."""
    content = {media_type: {"schema": {"type": "string"}} for media_type in media_types}
    # The class has no media type, so that the document does not add JSON to these.
    return {"responses": {200: {"content": content, "description": "Done"}}, "response_class": Response}


def page_schema(noun: str, shape: Any) -> dict[str, Any]:
    """Declare that a route answers a page of records under the name `noun`."""
    # By the noun: commands, notebooks and other tasks are records of one shape.
    name = f"{noun[:1].upper()}{noun[1:]}Page"
    return response_schema(TypedDict(name, {noun: list[shape], "pagination": Pagination}))  # type: ignore[operator]


def record_schema(noun: str, shape: Any) -> dict[str, Any]:
    """Declare that a route answers one record under the name `noun`."""
    return response_schema(TypedDict(f"One{shape.__name__}", {noun: shape}))  # type: ignore[operator]
