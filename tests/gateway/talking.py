"""A task that talks: its lines in LOGS."""

from __future__ import annotations

import msgspec

from det_contracts import reports, subjects
from services.kit.log import Draft


def lines_of(stored):
    batch = reports.log_batch(stored.subject, stored.body)
    if batch is None:
        return
    for index, line in enumerate(batch.lines):
        fields = ("task_id", "allocation_id", "worker_id", "source")
        named = {field: getattr(batch, field) for field in fields}
        yield {**named, **msgspec.structs.asdict(line), "id": stored.position * 4096 + index}


async def say(gateway, offset, *texts, level=None, rank=None, task="1.r1", at=1_700_000_000.25):
    batch = reports.LogBatch(
        task_id=task,
        allocation_id=f"{task}.1",
        worker_id="w-1",
        source="task",
        offset=offset,
        lines=[reports.LogLine(at, "stdout", level, rank, text) for text in texts],
    )
    id = f"log-{task}-{offset}-{len(gateway.journal.streams[subjects.LOGS])}"
    await gateway.journal.append(Draft(subjects.logs(task), msgspec.json.encode(batch), id))
