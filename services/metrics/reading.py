"""Reads the messages of REPORTS as records.

Scripts write to REPORTS directly, so a bad message must not stop the service: one that cannot be read, or
that names another trial than its subject, is skipped and counted.
"""

from __future__ import annotations

import msgspec

from det_contracts import subjects
from det_contracts.envelope import Recorded, Unknown
from det_contracts.nesting import is_too_deep
from det_contracts.reports import ReportBatch, report_id
from services.kit.database import replace_nul
from services.kit.log import Stored
from services.metrics.domain import JudgedBatch
from services.metrics.reports.tables import ROWS_PER_BATCH

replace = msgspec.structs.replace
LARGEST = 2**31 - 1
MAX_SENDER_CHARACTERS = 64
_reports = msgspec.json.Decoder(ReportBatch)


def read_reports(message: Stored, stream: str) -> Recorded:
    """Read a batch of reports."""
    try:
        # Nesting is checked first: a few kilobytes of brackets would exhaust the decoder's stack.
        batch = None if is_too_deep(message.body) else _reports.decode(message.body)
    except (msgspec.MsgspecError, UnicodeError):
        batch = None
    if batch is None:
        return Recorded(message.position, Unknown("damaged reports", 1), "", "", 0.0, "", stream)
    # Run 0 is that of a trial that has not started, whose results were measured elsewhere.
    numbers = (batch.trial_id, batch.experiment_id, batch.run + 1)
    counted = 0 <= batch.number <= LARGEST and len(batch.sender) <= MAX_SENDER_CHARACTERS
    sound = counted and all(0 < n <= LARGEST for n in numbers) and len(batch.series) < ROWS_PER_BATCH
    rows = sum(len(series.steps) for series in batch.series)
    if not sound or rows > ROWS_PER_BATCH or message.subject != subjects.reports(batch.trial_id):
        return Recorded(message.position, Unknown("misplaced reports", 1), "", "", 0.0, "", stream)
    # A group's name becomes part of a key, and PostgreSQL stores no NUL. Most messages have none, so they are
    # not copied.
    if b"\\u0000" in message.body:
        batch = replace(batch, series=[replace(s, group=replace_nul(s.group)) for s in batch.series])
    judged = JudgedBatch(batch, size=len(message.body))
    id = report_id(batch.trial_id, batch.run, batch.number, batch.sender)
    return Recorded(message.position, judged, id, f"trial:{batch.trial_id}", 0.0, "", stream)
