"""Lists of ids from the catalogue's tables, filtered, sorted and cut to a page."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from det_contracts.problems import invalid
from services.catalogue import columns
from services.catalogue.columns.column import sort_columns
from services.catalogue.columns.experiments import label_text
from services.catalogue.filter_text import check_length
from services.catalogue.store import CHECKPOINTS, EXPERIMENTS, TRIALS
from services.kit.paging import Span, Window, experiments_span, span

Column = sa.ColumnElement[Any]

MAX_LABELS = 100
"""Labels that one filter may name. Each is a condition, and databases take no more than some hundreds."""
DURATION = "DURATION"
PROGRESS = "PROGRESS"
"""Only the searcher knows progress, so the tables cannot sort by it."""


class IdPage(msgspec.Struct, frozen=True):
    """One page of ids."""

    ids: list[Any]
    span: Span


class ExperimentFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which experiments are wanted; all given conditions must hold (REST spec, 3.2)."""

    name: str = ""
    description: str = ""
    labels: list[str] = []
    archived: bool | None = None
    states: list[str] = []
    """Stored states, or those displayed in place of ACTIVE."""
    users: list[str] = []
    project_id: int = 0
    ids: list[int] = []
    """If not empty, only these experiments."""
    not_ids: list[int] = []
    first_id: int = 0
    last_id: int | None = None
    """The largest id; None for no bound."""
    projects: list[int] | None = None
    """The projects whose experiments are visible; None for all."""


EXPERIMENT_SORTS = sort_columns(columns.experiments.COLUMNS, EXPERIMENTS)
TRIAL_SORTS = sort_columns(columns.trials.COLUMNS, TRIALS)
CHECKPOINT_SORTS = sort_columns(columns.checkpoints.COLUMNS, CHECKPOINTS)


def experiment_page(
    connection: sa.Connection, criteria: ExperimentFilter, sort: str, window: Window
) -> IdPage:
    """A page of experiments; `sort` is a key of `EXPERIMENT_SORTS`."""
    column = EXPERIMENT_SORTS[sort]
    return _page(connection, EXPERIMENTS, _conditions(criteria), column, window, experiments_span)


def all_experiment_ids(connection: sa.Connection, criteria: ExperimentFilter) -> list[int]:
    """The ids of all matching experiments, in ascending order."""
    return list(
        connection.scalars(
            sa.select(EXPERIMENTS.c.id).where(*_conditions(criteria)).order_by(EXPERIMENTS.c.id)
        )
    )


def trial_page(
    connection: sa.Connection,
    experiment_id: int,
    states: Sequence[str],
    sort: str,
    window: Window,
    *,
    smaller_is_better: bool,
) -> IdPage:
    """A page of an experiment's trials. Sorting by a metric in ascending order puts the best first.

    Trials without the metric come last.
    """
    conditions = [TRIALS.c.experiment_id == experiment_id, *_in_states(TRIALS, states)]
    if sort == DURATION:
        # A duration that is still growing cannot be stored, so it is computed from the two stored times.
        column: Column = sa.func.coalesce(TRIALS.c.ended_at, time.time()) - TRIALS.c.started_at
    else:
        column = TRIAL_SORTS[sort]
    if sort.endswith("VALIDATION_METRIC") and not smaller_is_better:
        column = -column
    return _page(connection, TRIALS, conditions, column, window, span)


def trial_ids(connection: sa.Connection, experiment_ids: Sequence[int]) -> dict[int, list[int]]:
    """The ids of the trials of some experiments, each in ascending order."""
    c, ids_by_experiment = TRIALS.c, {id: list[int]() for id in experiment_ids}
    query = sa.select(c.experiment_id, c.id).where(c.experiment_id.in_(experiment_ids)).order_by(c.id)
    for experiment_id, id in connection.execute(query):
        ids_by_experiment[experiment_id].append(id)
    return ids_by_experiment


def checkpoints_at_steps(connection: sa.Connection, steps: Mapping[int, int]) -> list[str]:
    """The checkpoints of some trials, each at the steps that are given for it."""
    c = CHECKPOINTS.c
    query = sa.select(c.uuid, c.trial_id, c.steps).where(c.trial_id.in_(list(steps)))
    return [uuid for uuid, trial_id, at in connection.execute(query) if steps[trial_id] == at]


def checkpoint_page(
    connection: sa.Connection,
    states: Sequence[str],
    sort: str,
    window: Window,
    *,
    experiment_id: int | None = None,
    trial_id: int | None = None,
) -> IdPage:
    """A page of the checkpoints of an experiment or of a trial."""
    conditions: list[Column] = []
    if experiment_id is not None:
        conditions.append(CHECKPOINTS.c.experiment_id == experiment_id)
    if trial_id is not None:
        conditions.append(CHECKPOINTS.c.trial_id == trial_id)
    if states:
        conditions.append(CHECKPOINTS.c.state.in_(states))
    return _page(connection, CHECKPOINTS, conditions, CHECKPOINT_SORTS[sort], window, span)


def _conditions(criteria: ExperimentFilter) -> list[Column]:
    columns = EXPERIMENTS.c
    conditions: list[Column] = [
        column.icontains(check_length(field, text), autoescape=True)
        for field, column, text in (
            ("name", columns.name, criteria.name),
            ("description", columns.description, criteria.description),
        )
        if text
    ]
    labels = dict.fromkeys(check_length("labels", label) for label in criteria.labels)
    if len(labels) > MAX_LABELS:
        raise invalid(f"labels: {len(labels)} are named, and {MAX_LABELS} at most are looked for at once")
    # The brackets of the JSON list are cut off and the quotes stay, so that `ab` is not found in the label
    # `abc`.
    conditions += [columns.labels.contains(label_text([label])[1:-1], autoescape=True) for label in labels]
    conditions += _in_states(EXPERIMENTS, criteria.states)
    if criteria.users:
        conditions.append(columns.username.in_(criteria.users))
    if criteria.ids:
        conditions.append(columns.id.in_(criteria.ids))
    conditions += _id_bounds(criteria)
    if criteria.archived is not None:
        conditions.append(columns.archived.is_(criteria.archived))
    if criteria.projects is not None:
        conditions.append(columns.project_id.in_(criteria.projects))
    if criteria.project_id:
        conditions.append(columns.project_id == criteria.project_id)
    return conditions


def _id_bounds(criteria: ExperimentFilter) -> list[Column]:
    id = EXPERIMENTS.c.id
    conditions: list[Column] = [id.not_in(criteria.not_ids)] if criteria.not_ids else []
    conditions += [id >= criteria.first_id] if criteria.first_id > 1 else []
    return conditions + ([id <= criteria.last_id] if criteria.last_id is not None else [])


def _in_states(table: sa.Table, states: Sequence[str]) -> list[Column]:
    return [sa.or_(table.c.state.in_(states), table.c.shown_state.in_(states))] if states else []


def _order(column: Column, key: Column, *, descending: bool) -> Iterator[Column]:
    # SQLite puts nulls first and PostgreSQL last; this says it explicitly, where there may be any. Elsewhere
    # an index gives the order, if nothing stands before its columns.
    if getattr(column, "nullable", True):
        yield column.is_(None)
    # The key breaks ties, because pages of equal values would otherwise overlap or leave rows out.
    for sort_column in dict.fromkeys((column, key)):
        yield sort_column.desc() if descending else sort_column.asc()


def _page(
    connection: sa.Connection,
    table: sa.Table,
    conditions: Sequence[Column],
    column: Column,
    window: Window,
    span_of: Callable[[Window, int], Span],
) -> IdPage:
    key = next(iter(table.primary_key))
    total = connection.scalar(sa.select(sa.func.count()).select_from(table).where(*conditions)) or 0
    page_span = span_of(window, total)
    query = sa.select(key).where(*conditions).order_by(*_order(column, key, descending=window.descending))
    page = query.offset(page_span.start).limit(page_span.end - page_span.start)
    return IdPage(list(connection.scalars(page)), page_span)
