"""Lines of logs (scheduling spec, section 11)."""

from __future__ import annotations

from typing import Any

from det_contracts.ids import container_id
from services.catalogue.api_values import format_time
from services.catalogue.peers import LogLine
from services.kit.patterns import Search

MAX_SHOWN_CHARACTERS = 8192
MAX_HITS = 50
"""Maximum number of hits marked in one line."""


def line(record: LogLine, trial_id: int | None) -> dict[str, Any]:
    """A line of a trial, or of a task if `trial_id` is None."""
    container = container_id(record.allocation_id, record.worker_id) if record.worker_id else ""
    at = format_time(record.at)
    owner = {"taskId": record.task_id} if trial_id is None else {"trialId": trial_id}
    return {
        "id": str(record.id),
        "timestamp": at,
        # `det trial logs` of 0.25 prints this as it is.
        "message": format_line(at, container, record),
        "level": f"LOG_LEVEL_{record.level or 'UNSPECIFIED'}",
        **owner,
        "allocationId": record.allocation_id or None,
        "agentId": record.worker_id or None,
        "containerId": container or None,
        "rankId": record.rank,
        # With the line end, as in 0.25.
        "log": record.text + "\n",
        "source": record.source,
        "stdtype": record.stdtype,
    }


def message(record: LogLine) -> str:
    """The formatted line."""
    container = container_id(record.allocation_id, record.worker_id) if record.worker_id else ""
    return format_line(format_time(record.at), container, record)


def page_line(record: LogLine, *, whole: bool, mark: Search | None = None) -> dict[str, Any]:
    """A line as a page shows it. If the text was cut, `length` is its full length in characters.

    `hits` are the ranges that `mark` finds, in UTF-16 units as browsers count them.
    """
    cut = not whole and len(record.text) > MAX_SHOWN_CHARACTERS
    text = record.text[:MAX_SHOWN_CHARACTERS] if cut else record.text
    shown_line = {
        "id": str(record.id),
        "number": record.number,
        "timestamp": format_time(record.at),
        "level": record.level,
        "rankId": record.rank,
        "allocationId": record.allocation_id or None,
        "agentId": record.worker_id or None,
        "source": record.source,
        "stdtype": record.stdtype,
        "log": text,
    }
    shown_line |= {"length": len(record.text)} if cut else {}
    return shown_line if mark is None else shown_line | {"hits": _hits(text, mark)}


def _hits(text: str, mark: Search) -> list[tuple[int, int]]:
    raw, at, hits = text.encode(), 0, list[tuple[int, int]]()
    while len(hits) < MAX_HITS and at <= len(raw) and (hit := mark(raw, at)) is not None:
        # After an empty match, continue one position later.
        at = max(hit.end(), hit.start() + 1)
        if hit.end() > hit.start():
            hits.append((_utf16_length(raw[: hit.start()]), _utf16_length(raw[: hit.end()])))
    return hits


def _utf16_length(raw: bytes) -> int:
    # A hit may begin inside of a character, because patterns are matched on bytes.
    return len(raw.decode("utf-8", "ignore").encode("utf-16-le")) // 2


def summary(log_fields: dict[str, Any]) -> dict[str, object]:
    """The number of lines, the values by which they can be filtered, and where they show a failure."""
    names = {"lastLine": "last_line", "firstError": "first_error", "failingLine": "failing_line"}
    ids = {name: log_fields[key] for name, key in names.items()}
    return {
        **fields(log_fields),
        "levels": {
            f"LOG_LEVEL_{level or 'UNSPECIFIED'}": count for level, count in log_fields["levels"].items()
        },
        "withoutRank": None in log_fields["ranks"],
        "lines": log_fields["lines"],
        "lastNumber": log_fields["last_number"],
        **{name: None if id is None else str(id) for name, id in ids.items()},
        "marks": [{"part": part, "errors": bad, "warnings": odd} for part, bad, odd in log_fields["marks"]],
    }


def format_line(at: str, container: str, record: LogLine) -> str:
    """The formatted line, including the line end."""
    rank = f" [rank={record.rank}]" if record.rank is not None else ""
    level = f"{record.level}: " if record.level else ""
    return f"[{at}] {container[:8] or ' ' * 8}{rank} || {level}{record.text}\n"


def fields(log_fields: dict[str, Any]) -> dict[str, object]:
    """The values by which lines can be filtered, from the metrics service's answer."""
    places = [(allocation, worker) for allocation, worker in log_fields["places"] if worker]
    return {
        "allocationIds": sorted({allocation for allocation, _ in log_fields["places"] if allocation}),
        "agentIds": sorted({worker for _, worker in places}),
        "containerIds": sorted({container_id(*place) for place in places}),
        "rankIds": [rank for rank in log_fields["ranks"] if rank is not None],
        "stdtypes": log_fields["stdtypes"],
        "sources": log_fields["sources"],
    }
