"""The columns of experiments."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

import sqlalchemy as sa

from services.catalogue.columns.column import (
    BYTES,
    DATE,
    FLAG,
    FRACTION,
    INTEGER,
    LARGEST,
    REAL,
    SECONDS,
    STATE,
    TAGS,
    TEXT,
    Column,
    StoredColumn,
    columns_by_name,
)
from services.catalogue.display_state import experiment_state
from services.catalogue.domain import Experiment, State
from services.catalogue.domain.running_time import running_s, slot_s
from services.people import users


def label_text(labels: Sequence[str]) -> str:
    """Labels as stored in the table: a JSON list, so that each label is quoted."""
    return json.dumps(list(labels), ensure_ascii=False)


def _user(state: State, experiment: Experiment) -> str:
    user = users.by_any_name(state, experiment.user)
    return user.username if user else experiment.user


HOUR_S = 3600.0
C = Column[Experiment]
COLUMNS = columns_by_name(
    [
        C(
            "id",
            "ID",
            INTEGER,
            lambda experiment: experiment.id,
            sort="ID",
            stored=(StoredColumn("id", sa.Integer, key=True),),
        ),
        C(
            "name",
            "Name",
            TEXT,
            lambda experiment: experiment.name,
            sort="NAME",
            stored=(StoredColumn("name", sa.String),),
        ),
        C(
            "description",
            "Description",
            TEXT,
            lambda experiment: experiment.description,
            sort="DESCRIPTION",
            stored=(StoredColumn("description", sa.String),),
        ),
        C(
            "tags",
            "Labels",
            TAGS,
            lambda experiment: experiment.labels,
            json="labels",
            stored=(StoredColumn("labels", sa.String, lambda experiment: label_text(experiment.labels)),),
        ),
        C(
            "forkedFrom",
            "Forked from",
            INTEGER,
            lambda experiment: experiment.parent_id,
            optional=True,
            sort="FORKED_FROM",
            stored=(StoredColumn("parent_id", sa.Integer),),
        ),
        C(
            "startTime",
            "Started",
            DATE,
            lambda experiment: experiment.created_at,
            sort="START_TIME",
            stored=(StoredColumn("started_at", sa.Float),),
        ),
        C(
            "endTime",
            "Ended",
            DATE,
            lambda experiment: experiment.ended_at,
            optional=True,
            sort="END_TIME",
            stored=(StoredColumn("ended_at", sa.Float),),
            listed=False,
        ),
        C(
            "duration",
            "Duration",
            SECONDS,
            lambda experiment: (experiment.ended_at or time.time()) - experiment.created_at,
            changes_with_time=True,
        ),
        # Clients of 0.25 expect the whole time from submission to end under `duration`.
        C(
            "runningTime",
            "Running time",
            SECONDS,
            lambda experiment: running_s(experiment, time.time()),
            changes_with_time=True,
        ),
        C(
            "slotHours",
            "Slot hours",
            REAL,
            lambda experiment: slot_s(experiment, time.time()) / HOUR_S,
            changes_with_time=True,
        ),
        C(
            "numTrials",
            "Trials",
            INTEGER,
            lambda experiment: experiment.trials,
            sort="NUM_TRIALS",
            stored=(StoredColumn("trials", sa.Integer),),
        ),
        C(
            "state",
            "State",
            STATE,
            experiment_state,
            sort="STATE",
            stored=(
                StoredColumn("state", sa.String, lambda experiment: experiment.state, index=True),
                StoredColumn("shown_state", sa.String, index=True),
            ),
        ),
        C("searcherType", "Searcher", TEXT, lambda experiment: experiment.searcher),
        C(
            "resourcePool",
            "Resource pool",
            TEXT,
            lambda experiment: experiment.pool,
            sort="RESOURCE_POOL",
            stored=(StoredColumn("pool", sa.String),),
        ),
        # Only the searcher knows progress; the routes query it.
        C("progress", "Progress", FRACTION, json=None, optional=True, sort="PROGRESS"),
        C(
            "checkpointSize",
            "Size of checkpoints",
            BYTES,
            lambda experiment: experiment.checkpoint_bytes,
            sort="CHECKPOINT_SIZE",
            stored=(
                StoredColumn(
                    "checkpoint_bytes",
                    sa.BigInteger,
                    lambda experiment: min(experiment.checkpoint_bytes, LARGEST),
                ),
            ),
        ),
        C(
            "checkpointCount",
            "Checkpoints",
            INTEGER,
            lambda experiment: experiment.checkpoints,
            sort="CHECKPOINT_COUNT",
            stored=(StoredColumn("checkpoints", sa.Integer),),
        ),
        C(
            "user",
            "User",
            TEXT,
            of_state=_user,
            json="username",
            sort="USER",
            stored=(StoredColumn("username", sa.String, lambda experiment: experiment.user, index=True),),
        ),
        C("searcherMetric", "Searcher metric", TEXT, lambda experiment: experiment.metric),
        C(
            "searcherMetricsVal",
            "Best searcher metric",
            REAL,
            lambda experiment: experiment.best_metric,
            json="bestTrialSearcherMetric",
            optional=True,
            sort="SEARCHER_METRIC_VAL",
            stored=(StoredColumn("metric", sa.Float),),
        ),
        C(
            "archived",
            "Archived",
            FLAG,
            lambda experiment: experiment.archived,
            stored=(StoredColumn("archived", sa.Boolean),),
            listed=False,
        ),
        C(
            "projectId",
            "Project",
            INTEGER,
            lambda experiment: experiment.project_id,
            sort="PROJECT_ID",
            stored=(StoredColumn("project_id", sa.Integer),),
            listed=False,
        ),
        C("notes", "Notes", TEXT, lambda experiment: experiment.notes, listed=False),
    ]
)
