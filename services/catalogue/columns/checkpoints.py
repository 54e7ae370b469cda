"""The columns of checkpoints. Their JSON is nested, and built in `present/checkpoint.py`."""

from __future__ import annotations

import sqlalchemy as sa

from services.catalogue.columns.column import DATE, REAL, STATE, TEXT, WHOLE, Column, Kept, table_of
from services.catalogue.domain import Checkpoint

C = Column[Checkpoint]
COLUMNS = table_of(
    [
        C("uuid", "UUID", TEXT, lambda one: one.uuid, sort="UUID", kept=(Kept("uuid", sa.String, key=True),)),
        C(
            "trialId",
            "Trial",
            WHOLE,
            lambda one: one.trial_id,
            sort="TRIAL_ID",
            kept=(Kept("trial_id", sa.Integer, index=True),),
        ),
        C(
            "experimentId",
            "Experiment",
            WHOLE,
            lambda one: one.experiment_id,
            kept=(Kept("experiment_id", sa.Integer, index=True),),
        ),
        C(
            "steps",
            "Batches",
            WHOLE,
            lambda one: one.steps,
            sort="BATCH_NUMBER",
            kept=(Kept("steps", sa.BigInteger),),
        ),
        C(
            "reportTime",
            "Stored",
            DATE,
            lambda one: one.at,
            sort="END_TIME",
            kept=(Kept("stored_at", sa.Float),),
        ),
        C("state", "State", STATE, lambda one: one.state, sort="STATE", kept=(Kept("state", sa.String),)),
        C(
            "searcherMetric",
            "Searcher metric",
            REAL,
            lambda one: one.metric,
            optional=True,
            sort="SEARCHER_METRIC",
            kept=(Kept("metric", sa.Float),),
        ),
    ]
)
