"""`det task`: everything that is queued or running (client spec, section 6)."""

from __future__ import annotations

import argparse
from typing import Any

from determined.cli import formatting, output, trial_logs
from determined.cli.failure import Failure
from determined.cli.grammar import Noun, Verb, arg, one_of
from determined.transport import log_stream
from determined.transport.rest import Session

Object = dict[str, Any]
_HEADERS = [
    "Task ID",
    "Allocation ID",
    "Name",
    "Slots Needed",
    "Registered Time",
    "Agent",
    "Priority",
    "Resource Pool",
    "Ports",
]


def list_tasks(session: Session, args: argparse.Namespace) -> None:
    """List tasks, one row per allocation."""
    show_tasks(_summaries(session), args)


def show_tasks(tasks: dict[str, Object], args: argparse.Namespace) -> None:
    """Print allocations by id, as a table, CSV or JSON."""
    if args.json:
        output.print_json(tasks)
    else:
        rows = [_row(task) for task in sorted(tasks.values(), key=lambda task: task["registeredTime"])]
        output.table(_HEADERS, rows, as_csv=args.csv)


def logs(session: Session, args: argparse.Namespace) -> None:
    """Show the log of a task. For a task that has ended, give its full id."""
    live = {task["taskId"] for task in _summaries(session).values()}
    trial_logs.show_logs(session, log_stream.task(meant(args.task_id, live)), args)


def meant(start: str, ids: set[str]) -> str:
    """Return the one id with this prefix, or the text itself if none matches. `Failure` if several match."""
    matching = sorted(id for id in ids if id.startswith(start))
    if len(matching) > 1 and start not in matching:
        raise Failure(f"'{start}' may mean {', '.join(matching)}; write more of the id")
    return matching[0] if len(matching) == 1 else start


def _summaries(session: Session) -> dict[str, Object]:
    tasks: dict[str, Object] = session.get("/api/v1/tasks")["allocationIdToSummary"]
    return tasks


def agents_of(task: Object) -> list[str]:
    """Return the agents whose slots an allocation holds."""
    return sorted({agent for part in task.get("resources") or [] for agent in part.get("agentDevices") or {}})


def _row(task: Object) -> list[Any]:
    ports = [str(port.get("port")) for port in task.get("proxyPorts") or []]
    return [
        task["taskId"],
        task["allocationId"],
        task["name"],
        task.get("slotsNeeded"),
        formatting.when(task.get("registeredTime")),
        formatting.listed(agents_of(task)) or "unassigned",
        task.get("priority") if task.get("schedulerType") == "priority" else "N/A",
        task.get("resourcePool"),
        formatting.listed(ports),
    ]


NOUN = Noun(
    "task",
    "show all tasks and their logs",
    (
        Verb(
            "list ls",
            "list tasks",
            list_tasks,
            (
                one_of(
                    arg("--csv", action="store_true", help="write CSV"),
                    arg("--json", action="store_true", help="write the master's response"),
                ),
            ),
        ),
        Verb(
            "logs",
            "show the log of a task",
            logs,
            (arg("task_id", help="id of the task, or a unique prefix"), *trial_logs.LOG_ARGS),
        ),
    ),
    default="list",
)
