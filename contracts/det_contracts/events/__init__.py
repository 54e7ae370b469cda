"""The events, one file per owner. Importing this package registers every event with the codec."""

from det_contracts.events import (
    archive,
    checkpoints,
    gateway,
    metrics,
    scheduler,
    searcher,
    trial,
    webhooks,
    worker,
)
from det_contracts.events.decision import Decision

__all__ = [
    "Decision",
    "archive",
    "checkpoints",
    "gateway",
    "metrics",
    "scheduler",
    "searcher",
    "trial",
    "webhooks",
    "worker",
]
