"""Log lines sent by tasks themselves (REST spec, section 8)."""

from __future__ import annotations

import itertools
import time
import uuid
from datetime import datetime
from typing import Annotated, Any

import msgspec
from starlette.responses import Response

from det_contracts import subjects
from det_contracts.limits import NAME_CHARACTERS
from det_contracts.problems import Problem, Refused, invalid
from det_contracts.reports import LogBatch, LogLine
from services.catalogue.rights import authorize
from services.kit.authz.access_check import AccessRequest
from services.kit.log import Draft
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.body import COMPONENTS, in_utc, request_schema
from services.rest_routes.tasks.witness import append_to_log, run_of_script
from services.web.routes import Routes

LINES_PER_MESSAGE = 1000
"""Maximum number of lines in one message."""
Name = Annotated[str, msgspec.Meta(max_length=NAME_CHARACTERS, pattern=r"^[^\x00]*$")]
Rank = Annotated[int, msgspec.Meta(ge=-1, lt=2**31)]
root = Routes()


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One log line, with the clients' field names."""

    task_id: str
    log: str = ""
    allocation_id: str | None = None
    agent_id: Name | None = None
    rank_id: Rank | None = None
    rank: Rank | None = None
    timestamp: datetime | None = None
    level: Name | None = None
    stdtype: Name | None = None
    source: Name | None = None


def _schema() -> dict[str, Any]:
    """The JSON schema of a list of records."""
    (schema,), definitions = msgspec.json.schema_components(
        [list[Record]], ref_template=COMPONENTS + "{name}"
    )
    return schema | {"$defs": definitions}


@root.post("/task-logs", ("speak", "body"), **request_schema(_schema()))
async def ship(call: Authenticated) -> Response:
    """Store a list of log lines.

    A repeated request stores nothing more for two minutes if it has an `Idempotency-Key`, or if each of its
    lines has a timestamp with a fraction of a second.
    """
    try:
        body = await call.json()
        records = msgspec.convert(body if isinstance(body, list) else [body], list[Record], strict=False)
    except msgspec.ValidationError as error:
        raise invalid(f"the log records cannot be read: {error}") from None
    id, numbers = await _request_id(call, records), itertools.count()
    for (task, allocation, agent, source), lines in _group_by_source(call, records).items():
        for start in range(0, len(lines), LINES_PER_MESSAGE):
            batch = LogBatch(
                task_id=task,
                allocation_id=allocation,
                worker_id=agent,
                source=source,
                offset=-1,
                lines=lines[start : start + LINES_PER_MESSAGE],
            )
            draft = Draft(subjects.logs(task), msgspec.json.encode(batch), f"log-{id}-{next(numbers)}")
            await append_to_log(call.backend.journal, draft)
    return call.answer({})


async def _request_id(call: UserCall, records: list[Record]) -> str:
    """An id that is the same if the request is repeated, as far as that can be told."""
    key = await call.idempotency_key()
    # A script may well print the same twice in a second, but not in the same fraction of one.
    is_told_apart = all(record.timestamp and record.timestamp.microsecond for record in records)
    if key is None and not is_told_apart:
        return uuid.uuid4().hex
    # The digest in any case: another request with the same key must lose no line.
    return f"{key.request_id if key else call.user.id}-{await call.request_digest()}"


LogSource = tuple[str, str, str, str]


def _group_by_source(call: UserCall, records: list[Record]) -> dict[LogSource, list[LogLine]]:
    session, lines_by_source = call.session(), dict[LogSource, list[LogLine]]()
    for record in records:
        allocation = _allocation(call, record, session.allocation)
        members = allocation.members
        agent = record.agent_id or (members[0].worker_id if members else "")
        log_source = (record.task_id, allocation.id, agent, record.source or "task")
        lines_by_source.setdefault(log_source, []).append(_line(record))
    return lines_by_source


def _allocation(call: UserCall, record: Record, own: str) -> Any:
    """The run that a line belongs to. Raises `Refused` if it is unknown or another task's."""
    allocation = run_of_script(call, record.task_id, record.allocation_id or "")
    if allocation is None or allocation.task_id != record.task_id:
        raise invalid(f"allocation '{record.allocation_id or own}' of task '{record.task_id}' is not known")
    if own and own != allocation.id:
        raise Refused(
            Problem("permission_denied", f"the token is that of {own}, the line of {allocation.id}")
        )
    authorize(call.catalogue.state, call.session(), AccessRequest("speak", "run", allocation.id))
    return allocation


def _line(record: Record) -> LogLine:
    at = in_utc(record.timestamp).timestamp() if record.timestamp else time.time()
    level = (record.level or "").removeprefix("LOG_LEVEL_") or None
    # Scripts outside the cluster send `rank`, and send 0 even if they are the only process.
    rank = record.rank_id if record.rank_id is not None else record.rank or None
    return LogLine(at, record.stdtype or "stdout", level, rank, record.log.rstrip("\n"))
