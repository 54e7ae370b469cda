"""The columns of trials."""

from __future__ import annotations

import sqlalchemy as sa

from services.catalogue.columns.column import (
    BYTES,
    DATE,
    INTEGER,
    LARGEST,
    REAL,
    STATE,
    TEXT,
    Column,
    StoredColumn,
    columns_by_name,
)
from services.catalogue.display_state import trial_state
from services.catalogue.domain import Trial

C = Column[Trial]
COLUMNS = columns_by_name(
    [
        C(
            "id",
            "ID",
            INTEGER,
            lambda trial: trial.id,
            sort="ID",
            stored=(StoredColumn("id", sa.Integer, key=True),),
        ),
        C(
            "experimentId",
            "Experiment",
            INTEGER,
            lambda trial: trial.experiment_id,
            stored=(StoredColumn("experiment_id", sa.Integer, index=True),),
        ),
        C(
            "state",
            "State",
            STATE,
            trial_state,
            sort="STATE",
            stored=(
                StoredColumn("state", sa.String, lambda trial: trial.state),
                StoredColumn("shown_state", sa.String),
            ),
        ),
        C(
            "startTime",
            "Started",
            DATE,
            lambda trial: trial.created_at,
            sort="START_TIME",
            stored=(StoredColumn("started_at", sa.Float),),
        ),
        C(
            "endTime",
            "Ended",
            DATE,
            lambda trial: trial.ended_at,
            optional=True,
            sort="END_TIME",
            stored=(StoredColumn("ended_at", sa.Float),),
        ),
        C(
            "restarts",
            "Restarts",
            INTEGER,
            lambda trial: trial.restarts,
            sort="RESTARTS",
            stored=(StoredColumn("restarts", sa.Integer),),
        ),
        # Pages may show more steps, as the metrics service also knows steps without a validation.
        C(
            "steps",
            "Batches",
            INTEGER,
            lambda trial: trial.steps,
            json=None,
            sort="BATCHES_PROCESSED",
            stored=(StoredColumn("steps", sa.BigInteger),),
        ),
        C(
            "bestMetric",
            "Best searcher metric",
            REAL,
            lambda trial: trial.best.metric if trial.best else None,
            json="searcherMetricValue",
            optional=True,
            sort="BEST_VALIDATION_METRIC",
            stored=(StoredColumn("best_metric", sa.Float),),
        ),
        C(
            "latestMetric",
            "Latest searcher metric",
            REAL,
            lambda trial: trial.latest.metric if trial.latest else None,
            json=None,
            optional=True,
            sort="LATEST_VALIDATION_METRIC",
            stored=(StoredColumn("latest_metric", sa.Float),),
        ),
        C(
            "checkpointSize",
            "Size of checkpoints",
            BYTES,
            lambda trial: trial.checkpoint_bytes,
            json="totalCheckpointSize",
            sort="CHECKPOINT_SIZE",
            stored=(
                StoredColumn(
                    "checkpoint_bytes", sa.BigInteger, lambda trial: min(trial.checkpoint_bytes, LARGEST)
                ),
            ),
        ),
        C("checkpointCount", "Checkpoints", INTEGER, lambda trial: trial.checkpoints),
        C("runnerState", "Script", TEXT, lambda trial: trial.runner_state),
        C("taskId", "Task", TEXT, lambda trial: trial.task_id),
    ]
)
