"""The columns of trials."""

from __future__ import annotations

import sqlalchemy as sa

from services.catalogue.columns.column import (
    BYTES,
    DATE,
    LARGEST,
    REAL,
    STATE,
    TEXT,
    WHOLE,
    Column,
    Kept,
    table_of,
)
from services.catalogue.display_state import trial_state
from services.catalogue.domain import Trial

C = Column[Trial]
COLUMNS = table_of(
    [
        C("id", "ID", WHOLE, lambda one: one.id, sort="ID", kept=(Kept("id", sa.Integer, key=True),)),
        C(
            "experimentId",
            "Experiment",
            WHOLE,
            lambda one: one.experiment_id,
            kept=(Kept("experiment_id", sa.Integer, index=True),),
        ),
        C(
            "state",
            "State",
            STATE,
            trial_state,
            sort="STATE",
            kept=(Kept("state", sa.String, lambda one: one.state), Kept("shown_state", sa.String)),
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
        ),
        C(
            "restarts",
            "Restarts",
            WHOLE,
            lambda one: one.restarts,
            sort="RESTARTS",
            kept=(Kept("restarts", sa.Integer),),
        ),
        # Pages may show more steps, as the metrics service also knows steps without a validation.
        C(
            "steps",
            "Batches",
            WHOLE,
            lambda one: one.steps,
            json=None,
            sort="BATCHES_PROCESSED",
            kept=(Kept("steps", sa.BigInteger),),
        ),
        C(
            "bestMetric",
            "Best searcher metric",
            REAL,
            lambda one: one.best.metric if one.best else None,
            json="searcherMetricValue",
            optional=True,
            sort="BEST_VALIDATION_METRIC",
            kept=(Kept("best_metric", sa.Float),),
        ),
        C(
            "latestMetric",
            "Latest searcher metric",
            REAL,
            lambda one: one.latest.metric if one.latest else None,
            json=None,
            optional=True,
            sort="LATEST_VALIDATION_METRIC",
            kept=(Kept("latest_metric", sa.Float),),
        ),
        C(
            "checkpointSize",
            "Size of checkpoints",
            BYTES,
            lambda one: one.checkpoint_bytes,
            json="totalCheckpointSize",
            sort="CHECKPOINT_SIZE",
            kept=(Kept("checkpoint_bytes", sa.BigInteger, lambda one: min(one.checkpoint_bytes, LARGEST)),),
        ),
        C("checkpointCount", "Checkpoints", WHOLE, lambda one: one.checkpoints),
        C("runnerState", "Script", TEXT, lambda one: one.runner_state),
        C("taskId", "Task", TEXT, lambda one: one.task_id),
    ]
)
