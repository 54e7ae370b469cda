"""Reads the messages of LOGS as records. Unreadable and misplaced messages are skipped and counted."""

from __future__ import annotations

import msgspec

from det_contracts.envelope import Recorded, Unknown
from det_contracts.reports import LogLine, is_valid_batch, log_id
from services.kit.log import Stored
from services.metrics.domain import JudgedBatch, LogLines


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """A `LogBatch` whose lines are not decoded."""

    task_id: str
    allocation_id: str
    worker_id: str
    source: str
    offset: int
    lines: msgspec.Raw


_heads = msgspec.json.Decoder(Head)
_lines = msgspec.json.Decoder(list[LogLine])


def read_logs(message: Stored, stream: str) -> Recorded:
    """Read a batch of log lines."""
    try:
        head = _heads.decode(message.body)
        # Decoded once here only to know that they can be: a batch that fails later would stop the save.
        batch = LogLines(count=len(_lines.decode(head.lines)), **msgspec.structs.asdict(head))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return Recorded(message.position, Unknown("damaged log lines", 1), "", "", 0.0, "", stream)
    names = head.task_id, head.allocation_id, head.worker_id, head.source
    if not is_valid_batch(message.subject, names, batch.count):
        return Recorded(message.position, Unknown("misplaced log lines", 1), "", "", 0.0, "", stream)
    id = log_id(batch.allocation_id, batch.worker_id, batch.source, batch.offset)
    return Recorded(message.position, JudgedBatch(batch), id, f"worker:{batch.worker_id}", 0.0, "", stream)
