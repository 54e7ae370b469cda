"""The metrics service, joined from its parts."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts import subjects
from det_contracts.codec import BadRecord
from det_contracts.envelope import Recorded
from det_contracts.reports import LogBatch, ReportBatch
from services.kit.host import Service
from services.kit.rules import Rules
from services.metrics.commands import COMMANDS
from services.metrics.domain import Judged, State, evolve
from services.metrics.queries import READS
from services.metrics.react import react
from services.metrics.settling import settle_ended_trials
from services.metrics.store import project

_BATCHES: dict[str, msgspec.json.Decoder[Any]] = {
    subjects.REPORTS: msgspec.json.Decoder(ReportBatch),
    subjects.LOGS: msgspec.json.Decoder(LogBatch),
}


def decode_batch(body: bytes, position: int, stream: str) -> Recorded:
    """A message of REPORTS or LOGS."""
    try:
        batch = _BATCHES[stream].decode(body)
    except msgspec.MsgspecError as error:
        raise BadRecord(f"message {position} of {stream} cannot be read: {error}") from error
    return Recorded(position, Judged(batch), "", "", 0.0, "", stream)


RULES = Rules(
    owner="metrics",
    state=State,
    evolve=evolve,
    react=react,
    commands=COMMANDS,
    streams={
        subjects.CONTROL: (),
        subjects.REPORTS: (),
        subjects.LOGS: (),
    },
    decode={subjects.REPORTS: decode_batch, subjects.LOGS: decode_batch},
)
SERVICE = Service(RULES, project=project, reads=READS, extra=settle_ended_trials)
