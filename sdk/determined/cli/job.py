"""`det job`: the queue (client spec, section 6)."""

from __future__ import annotations

import argparse
from typing import Any

from determined.cli import formatting, output
from determined.cli.failure import Failure
from determined.cli.grammar import Noun, Verb, arg, one_of
from determined.cli.paging import paging_args, read_pages
from determined.transport.rest import Session

Object = dict[str, Any]
_OPERATIONS = {
    "priority": ("priority", int),
    "weight": ("weight", float),
    "resource-pool": ("resourcePool", str),
    "ahead-of": ("aheadOf", str),
    "behind-of": ("behindOf", str),
}


def list_jobs(session: Session, args: argparse.Namespace) -> None:
    """List the queue, and what each job waits for."""
    params = {"resourcePool": args.resource_pool} if args.resource_pool else {}
    params |= {"orderBy": "ORDER_BY_DESC"} if args.reverse else {}
    jobs = read_pages(session, "/api/v1/job-queues", "jobs", args, params)
    if args.json:
        output.print_json({"jobs": jobs})
    elif args.yaml:
        output.print_yaml({"jobs": jobs})
    else:
        share = _share(session, args.resource_pool)
        headers = ["#", "ID", "Type", "Job Name", share, "Submitted", "Slots (acquired/needed)", "State"]
        headers += ["User", "Resource Pool", "Waits for"]
        output.table(headers, [_row(job, share.lower(), args.csv) for job in jobs], as_csv=args.csv)


def _share(session: Session, pool: str | None) -> str:
    """Return what determines the order of a pool's queue. Without a name, uses the default pool."""
    pools = session.get("/api/v1/resource-pools")["resourcePools"]
    matching = [
        candidate
        for candidate in pools
        if (candidate["name"] == pool if pool else candidate.get("defaultComputePool"))
    ]
    by_weight = any(candidate.get("schedulerType") == "SCHEDULER_TYPE_FAIR_SHARE" for candidate in matching)
    return "Weight" if by_weight else "Priority"


def _row(job: Object, share: str, as_csv: bool) -> list[Any]:
    """Build a row. In CSV, types and states are as in the API, like in 0.25."""
    kind, state = str(job["type"]), job["summary"]["state"]
    ahead = job["summary"]["jobsAhead"]
    name = f"{job['name']} ({job['entityId']})" if job.get("entityId") else job["name"]
    return [
        "N/A" if ahead < 0 else ahead,
        job["jobId"],
        kind if as_csv else kind.removeprefix("TYPE_"),
        name,
        job.get(share),
        formatting.when(job.get("submissionTime")),
        f"{job['allocatedSlots']}/{job['requestedSlots']}",
        state if as_csv else formatting.state(state),
        job.get("username"),
        job.get("resourcePool"),
        job.get("waitsFor"),
    ]


def update(session: Session, args: argparse.Namespace) -> None:
    """Change a job's position or share."""
    options = {name: getattr(args, name.replace("-", "_")) for name in _OPERATIONS}
    chosen = {_OPERATIONS[name][0]: value for name, value in options.items() if value is not None}
    if not chosen:
        raise Failure(f"nothing to change: give one of {', '.join(f'--{name}' for name in _OPERATIONS)}")
    session.post("/api/v1/job-queues", {"updates": [{"jobId": args.job_id, **chosen}]})
    print(f"Updated job {args.job_id}")


def update_batch(session: Session, args: argparse.Namespace) -> None:
    """Apply several changes in order."""
    updates = [_operation(text) for text in args.operations]
    session.post("/api/v1/job-queues", {"updates": updates})
    print(f"Updated {len(updates)} job(s)")


def _operation(text: str) -> Object:
    target, equals, value = text.partition("=")
    job_id, dot, name = target.rpartition(".")
    operation = _OPERATIONS.get(name.replace("_", "-"))
    if not (equals and dot and job_id) or operation is None:
        names = ", ".join(_OPERATIONS)
        raise Failure(f"'{text}' is not of the form JOB.OPERATION=VALUE; operations are {names}")
    field, kind = operation
    try:
        return {"jobId": job_id, field: kind(value)}
    except ValueError:
        raise Failure(f"'{value}' in '{text}' is not a {'whole ' if kind is int else ''}number") from None


NOUN = Noun(
    "job j",
    "show and change the job queue",
    (
        Verb(
            "list ls",
            "list jobs",
            list_jobs,
            (
                arg("-p", "--resource-pool", metavar="POOL", help="only this pool's queue"),
                *paging_args(100),
                arg("--reverse", action="store_true", help="reverse order"),
                one_of(
                    arg("--json", action="store_true", help="write JSON"),
                    arg("--yaml", action="store_true", help="write YAML"),
                    arg("--table", action="store_true", help="write a table (default)"),
                    arg("--csv", action="store_true", help="write CSV"),
                ),
            ),
        ),
        Verb(
            "update u",
            "update a job",
            update,
            (
                arg("job_id", help="id as listed, such as experiment-7"),
                one_of(
                    arg("-p", "--priority", type=int, help="1 to 99; smaller numbers run first"),
                    arg("-w", "--weight", type=float, help="fair share weight"),
                    arg("--resource-pool", metavar="POOL", help="move it to this pool"),
                    arg("--ahead-of", metavar="JOB", help="put it directly ahead of this job"),
                    arg("--behind-of", metavar="JOB", help="put it directly behind this job"),
                ),
            ),
        ),
        Verb(
            "update-batch",
            "update several jobs",
            update_batch,
            (
                arg(
                    "operations",
                    nargs="+",
                    metavar="JOB.OPERATION=VALUE",
                    help=f"such as experiment-7.priority=3; operations are {', '.join(_OPERATIONS)}",
                ),
            ),
        ),
    ),
    default="list",
)
