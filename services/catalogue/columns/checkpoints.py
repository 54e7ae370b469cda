"""The columns of checkpoints. Their JSON is nested, and built in `present/checkpoint.py`."""

from __future__ import annotations

import sqlalchemy as sa

from services.catalogue.columns.column import (
    DATE,
    INTEGER,
    REAL,
    STATE,
    TEXT,
    Column,
    StoredColumn,
    columns_by_name,
)
from services.catalogue.domain import Checkpoint

C = Column[Checkpoint]
COLUMNS = columns_by_name(
    [
        C(
            "uuid",
            "UUID",
            TEXT,
            lambda checkpoint: checkpoint.uuid,
            sort="UUID",
            stored=(StoredColumn("uuid", sa.String, key=True),),
        ),
        C(
            "trialId",
            "Trial",
            INTEGER,
            lambda checkpoint: checkpoint.trial_id,
            sort="TRIAL_ID",
            stored=(StoredColumn("trial_id", sa.Integer, index=True),),
        ),
        C(
            "experimentId",
            "Experiment",
            INTEGER,
            lambda checkpoint: checkpoint.experiment_id,
            stored=(StoredColumn("experiment_id", sa.Integer, index=True),),
        ),
        C(
            "steps",
            "Batches",
            INTEGER,
            lambda checkpoint: checkpoint.steps,
            sort="BATCH_NUMBER",
            stored=(StoredColumn("steps", sa.BigInteger),),
        ),
        C(
            "reportTime",
            "Stored",
            DATE,
            lambda checkpoint: checkpoint.at,
            sort="END_TIME",
            stored=(StoredColumn("stored_at", sa.Float),),
        ),
        C(
            "state",
            "State",
            STATE,
            lambda checkpoint: checkpoint.state,
            sort="STATE",
            stored=(StoredColumn("state", sa.String),),
        ),
        C(
            "searcherMetric",
            "Searcher metric",
            REAL,
            lambda checkpoint: checkpoint.metric,
            optional=True,
            sort="SEARCHER_METRIC",
            stored=(StoredColumn("metric", sa.Float),),
        ),
    ]
)
