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
    LARGEST,
    REAL,
    SECONDS,
    SHARE,
    STATE,
    TAGS,
    TEXT,
    WHOLE,
    Column,
    Kept,
    table_of,
)
from services.catalogue.display_state import experiment_state
from services.catalogue.domain import Experiment, State
from services.people import users


def label_text(labels: Sequence[str]) -> str:
    """Labels as stored in the table: a JSON list, so that each label is quoted."""
    return json.dumps(list(labels), ensure_ascii=False)


def _user(state: State, one: Experiment) -> str:
    found = users.named(state, one.user)
    return found.username if found else one.user


C = Column[Experiment]
COLUMNS = table_of(
    [
        C("id", "ID", WHOLE, lambda one: one.id, sort="ID", kept=(Kept("id", sa.Integer, key=True),)),
        C("name", "Name", TEXT, lambda one: one.name, sort="NAME", kept=(Kept("name", sa.String),)),
        C(
            "description",
            "Description",
            TEXT,
            lambda one: one.description,
            sort="DESCRIPTION",
            kept=(Kept("description", sa.String),),
        ),
        C(
            "tags",
            "Labels",
            TAGS,
            lambda one: one.labels,
            json="labels",
            kept=(Kept("labels", sa.String, lambda one: label_text(one.labels)),),
        ),
        C(
            "forkedFrom",
            "Forked from",
            WHOLE,
            lambda one: one.parent_id,
            optional=True,
            sort="FORKED_FROM",
            kept=(Kept("parent_id", sa.Integer),),
        ),
        C(
            "startTime",
            "Started",
            DATE,
            lambda one: one.created_at,
            sort="START_TIME",
            kept=(Kept("started_at", sa.Float),),
        ),
        C(
            "endTime",
            "Ended",
            DATE,
            lambda one: one.ended_at,
            optional=True,
            sort="END_TIME",
            kept=(Kept("ended_at", sa.Float),),
            told=False,
        ),
        C(
            "duration",
            "Duration",
            SECONDS,
            lambda one: (one.ended_at or time.time()) - one.created_at,
            moves=True,
        ),
        C(
            "numTrials",
            "Trials",
            WHOLE,
            lambda one: one.trials,
            sort="NUM_TRIALS",
            kept=(Kept("trials", sa.Integer),),
        ),
        C(
            "state",
            "State",
            STATE,
            experiment_state,
            sort="STATE",
            kept=(
                Kept("state", sa.String, lambda one: one.state, index=True),
                Kept("shown_state", sa.String),
            ),
        ),
        C("searcherType", "Searcher", TEXT, lambda one: one.searcher),
        C(
            "resourcePool",
            "Resource pool",
            TEXT,
            lambda one: one.pool,
            sort="RESOURCE_POOL",
            kept=(Kept("pool", sa.String),),
        ),
        # Only the searcher knows progress; the routes query it.
        C("progress", "Progress", SHARE, json=None, optional=True, sort="PROGRESS"),
        C(
            "checkpointSize",
            "Size of checkpoints",
            BYTES,
            lambda one: one.checkpoint_bytes,
            sort="CHECKPOINT_SIZE",
            kept=(Kept("checkpoint_bytes", sa.BigInteger, lambda one: min(one.checkpoint_bytes, LARGEST)),),
        ),
        C(
            "checkpointCount",
            "Checkpoints",
            WHOLE,
            lambda one: one.checkpoints,
            sort="CHECKPOINT_COUNT",
            kept=(Kept("checkpoints", sa.Integer),),
        ),
        C(
            "user",
            "User",
            TEXT,
            within=_user,
            json="username",
            sort="USER",
            kept=(Kept("username", sa.String, lambda one: one.user, index=True),),
        ),
        C("searcherMetric", "Searcher metric", TEXT, lambda one: one.metric),
        C(
            "searcherMetricsVal",
            "Best searcher metric",
            REAL,
            lambda one: one.best_metric,
            json="bestTrialSearcherMetric",
            optional=True,
            sort="SEARCHER_METRIC_VAL",
            kept=(Kept("metric", sa.Float),),
        ),
        C(
            "archived",
            "Archived",
            FLAG,
            lambda one: one.archived,
            kept=(Kept("archived", sa.Boolean),),
            told=False,
        ),
        C(
            "projectId",
            "Project",
            WHOLE,
            lambda one: one.project_id,
            sort="PROJECT_ID",
            kept=(Kept("project_id", sa.Integer, index=True),),
            told=False,
        ),
        C("notes", "Notes", TEXT, lambda one: one.notes, told=False),
    ]
)
