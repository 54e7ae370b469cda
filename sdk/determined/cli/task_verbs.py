"""Code shared by commands, notebooks, shells and TensorBoards: starting, watching and killing tasks."""

from __future__ import annotations

import argparse
import contextlib
import time
import uuid
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin

from determined import context
from determined.cli import formatting, output, trial_logs
from determined.cli.config_file import read_config
from determined.cli.experiment_create import merged
from determined.cli.failure import Failure
from determined.cli.grammar import Noun, Run, Verb, arg
from determined.cli.task import meant
from determined.common.api import errors
from determined.transport import identity, log_stream, submission
from determined.transport.rest import Session

Object = dict[str, Any]
_POLL_S = 0.5
_LAST_LINES = 5


class Kind(NamedTuple):
    """A kind of task."""

    noun: str
    """Name in responses: `command`."""
    shown: str
    """Name in messages: `TensorBoard`."""
    columns: tuple[tuple[str, Callable[[Object], Any]], ...] = ()
    """Additional columns of its list, after the state."""
    page: str = ""
    """What its web page shows, if it has one: `Jupyter Notebook`."""

    @property
    def path(self) -> str:
        """Path in the REST API."""
        return f"/api/v1/{self.noun}s"


NO_BROWSER = arg("--no-browser", action="store_true", help="only print the address")
CONFIG_ARGS = (
    arg("--config-file", type=Path, metavar="FILE", help="configuration of the task (YAML)"),
    arg(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override one field; use dots for nested fields",
    ),
    arg("-c", "--context", type=Path, metavar="DIR", help="directory to send as the working directory"),
    arg(
        "-i",
        "--include",
        action="append",
        type=Path,
        default=[],
        metavar="PATH",
        help="additional file or directory to send",
    ),
    arg("--template", metavar="NAME", help="template that fills in what the configuration leaves out"),
    arg("-w", "--workspace-name", metavar="NAME", help="workspace of the task"),
    arg("-d", "--detach", action="store_true", help="only print the id"),
)
VOLUME = arg(
    "-v",
    "--volume",
    action="append",
    default=[],
    metavar="HOST_PATH:CONTAINER_PATH",
    help="host path to mount into a container; tasks without containers see all host paths",
)


def start(session: Session, kind: Kind, args: argparse.Namespace, config: Object, **more: Any) -> Object:
    """Submit a task. `config` takes precedence over the options."""
    answer = submit(session, kind, args, config, **more)
    for warning in submission.warnings_of(answer):
        output.warn(warning)
    made: Object = answer[kind.noun]
    return made


def submit(session: Session, kind: Kind, args: argparse.Namespace, config: Object, **more: Any) -> Object:
    """The whole answer to a task that is handed in."""
    user_config = merged(read_config(args.config_file)[1] if args.config_file else {}, args.config)
    mounts = [*(user_config.get("bind_mounts") or []), *map(_mount, getattr(args, "volume", []))]
    user_config |= {"bind_mounts": mounts} if mounts else {}
    body = {"config": {**user_config, **config}, "files": _files(args), **more}
    body |= {"templateName": args.template} if args.template else {}
    body |= {"workspaceId": workspace_id(session, args.workspace_name)} if args.workspace_name else {}
    # A proxy may repeat the request, but only one task may start.
    answer: Object = session.post(kind.path, body, headers={"Idempotency-Key": str(uuid.uuid4())})
    return answer


def _mount(volume: str) -> Object:
    host, colon, container = volume.partition(":")
    if not (host and colon and container):
        raise Failure(
            f"'--volume {volume}' is not of the form HOST_PATH:CONTAINER_PATH, as in /data:/mnt/data"
        )
    return {"host_path": host, "container_path": container}


def launched(session: Session, kind: Kind, args: argparse.Namespace, made: Object) -> None:
    """Print the id of the started task, and open its page once it is ready.

    With `--detach`, only print the id.
    """
    if args.detach:
        print(made["id"])
        return
    print(f"Launched {kind.shown} (id: {made['id']}).", flush=True)
    _open_page(session, kind, made["id"], browser=not args.no_browser)


def open_verb(kind: Kind) -> Verb:
    """Return the verb `open`, for kinds that have a page."""

    def run(session: Session, args: argparse.Namespace) -> None:
        _open_page(session, kind, find(session, kind, args.task_id), browser=True)

    return Verb("open", f"open a {kind.shown}", run, (arg("task_id", help="its id, or a unique prefix"),))


def _open_page(session: Session, kind: Kind, id: str, browser: bool) -> None:
    task = ready(session, kind, id, lambda task: bool(task.get("serviceAddress")))
    address = urljoin(f"{session.master}/", str(task["serviceAddress"]))
    print(f"{kind.page} is running at: {address}", flush=True)
    # Over ssh there is usually no browser, which `open` says by returning False.
    if browser and not webbrowser.open(address):
        print("No browser can be opened here; open the address yourself.")


def ready(session: Session, kind: Kind, id: str, is_ready: Callable[[Object], bool]) -> Object:
    """Wait until the task runs and `is_ready` accepts it.

    If it ends first, print the last lines of its log, which usually say why, and raise `Failure`.
    """
    while True:
        task: Object = session.get(f"{kind.path}/{id}")[kind.noun]
        if task["state"] in (*log_stream.ENDED, "STATE_TERMINATED"):
            how = f" ({task['exitStatus']})" if task.get("exitStatus") else ""
            with contextlib.suppress(errors.BadRequestException):
                trial_logs.show_last(session, log_stream.task(id), _LAST_LINES)
            raise Failure(f"{kind.shown} {id} has ended{how}; see 'det {kind.noun} logs {id}'")
        if task["state"] == "STATE_RUNNING" and is_ready(task):
            return task
        time.sleep(_POLL_S)


def follow(session: Session, task_id: str) -> None:
    """Show a task's log until it has ended."""
    source = log_stream.task(task_id)
    for record in log_stream.follow(session, source):
        trial_logs.show_line(record, flush=True)
    trial_logs.say_ended(source)


def workspace_id(session: Session, name: str) -> int:
    """Return the id of the workspace with this name. Raises `NotFoundException`."""
    from determined.experimental import _model

    return _model.workspace_id(session, name)


def verbs(kind: Kind) -> tuple[Noun | Verb, ...]:
    """Return the verbs common to all kinds."""
    task_id = arg("task_id", help=f"id of the {kind.shown}, or a unique prefix")
    several = arg("task_ids", nargs="+", metavar="task_id", help="ids, or unique prefixes")
    force = arg("-f", "--force", action="store_true", help="continue if one cannot be killed")
    priority = arg("priority", type=int, help="1 to 99; smaller numbers run first")
    listing = (
        arg("-q", "--quiet", action="store_true", help="only the ids"),
        arg("-a", "--all", action="store_true", help="include those of other users"),
        arg("-w", "--workspace-name", metavar="NAME", help="only of this workspace"),
        arg("--csv", action="store_true", help="write CSV"),
        arg("--json", action="store_true", help="write everything about them as JSON"),
    )
    return (
        Verb("list ls", f"list {kind.shown}s", _list(kind), listing),
        Verb("logs", f"show the log of a {kind.shown}", _logs(kind), (task_id, *trial_logs.LOG_ARGS)),
        Verb("kill", f"kill a {kind.shown}", _kill(kind), (several, force)),
        Noun(
            "set",
            f"change a {kind.shown}",
            (
                Verb(
                    "priority",
                    f"set the priority of a {kind.shown}",
                    _set_priority(kind),
                    (task_id, priority),
                ),
            ),
        ),
        Verb("config", f"show the configuration of a {kind.shown}", _show_config(kind), (task_id,)),
    )


def find(session: Session, kind: Kind, start: str) -> str:
    """Return the full id of a prefix. Raises `Failure` if several ids match."""
    known_ids = {str(task["id"]) for task in session.get(kind.path)[f"{kind.noun}s"]}
    return meant(start, known_ids)


def _list(kind: Kind) -> Run:
    def run(session: Session, args: argparse.Namespace) -> None:
        params: Object = {} if args.all else {"users": identity.current_user(session)}
        params |= {"workspaceId": workspace_id(session, args.workspace_name)} if args.workspace_name else {}
        tasks = session.get(kind.path, params)[f"{kind.noun}s"]
        if args.quiet:
            for entry in tasks:
                print(entry["id"])
            return
        spaces = {entry["id"]: entry["name"] for entry in session.get("/api/v1/workspaces")["workspaces"]}
        if args.json:
            output.print_json([_as_json(entry, spaces) for entry in tasks])
        else:
            rows = [_row(kind, entry, spaces) for entry in tasks]
            output.table(_headers(kind), rows, as_csv=args.csv)

    return run


def _as_json(task: Object, spaces: dict[Any, str]) -> Object:
    # Version 0.25 writes states without their prefix here, and here alone.
    state = formatting.state(task["state"])
    return task | {"state": state, "workspaceName": spaces.get(task.get("workspaceId"))}


def _headers(kind: Kind) -> list[str]:
    # Column names of version 0.25, which scripts read from CSV.
    more = [name for name, _ in kind.columns]
    state = ["id", "username", "description", "state"]
    return [*state, *more, "exitStatus", "resourcePool", "workspaceName"]


def _row(kind: Kind, task: Object, spaces: dict[int, str]) -> list[Any]:
    more = [read(task) for _, read in kind.columns]
    state = formatting.state(task["state"])
    return [
        task["id"],
        task.get("username"),
        task.get("description"),
        state,
        *more,
        task.get("exitStatus"),
        task.get("resourcePool"),
        spaces.get(task.get("workspaceId", 0)),
    ]


def _logs(kind: Kind) -> Run:
    def run(session: Session, args: argparse.Namespace) -> None:
        trial_logs.show_logs(session, log_stream.task(find(session, kind, args.task_id)), args)

    return run


def _kill(kind: Kind) -> Run:
    def run(session: Session, args: argparse.Namespace) -> None:
        for start in args.task_ids:
            try:
                id = find(session, kind, start)
                session.post(f"{kind.path}/{id}/kill")
            except (errors.BadRequestException, Failure) as error:
                if not args.force:
                    raise
                output.warn(f"{kind.shown} {start} was not killed: {error}")
                continue
            print(f"Killed {kind.shown} {id}")

    return run


def _set_priority(kind: Kind) -> Run:
    def run(session: Session, args: argparse.Namespace) -> None:
        id = find(session, kind, args.task_id)
        session.post(f"{kind.path}/{id}/set_priority", {"priority": args.priority})
        print(f"Set priority of {kind.shown} {id} to {args.priority}")

    return run


def _show_config(kind: Kind) -> Run:
    def run(session: Session, args: argparse.Namespace) -> None:
        output.print_yaml(session.get(f"{kind.path}/{find(session, kind, args.task_id)}")["config"])

    return run


def _files(args: argparse.Namespace) -> list[Object]:
    try:
        return context.pack(args.context, args.include)
    except (context.ContextError, OSError) as error:
        raise Failure(str(error)) from error
