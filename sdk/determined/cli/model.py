"""`det model`: the model registry (client spec, section 6)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from determined.cli import formatting, output
from determined.cli.failure import Failure
from determined.cli.grammar import Noun, Verb, arg
from determined.cli.paging import paging_args, read_pages
from determined.transport import instant
from determined.transport.identity import in_path
from determined.transport.rest import Session

if TYPE_CHECKING:
    from determined.experimental._model import Model

Object = dict[str, Any]
_NAME = arg("name", help="name or id of the model")
_JSON = arg("--json", action="store_true", help="write the master's answer")
_SORTS = ("name", "description", "creation_time", "last_updated_time", "num_versions", "workspace")


def _sort(text: str) -> str:
    return text.replace("-", "_")


def list_models(session: Session, args: argparse.Namespace) -> None:
    """List all models, or those of some workspaces."""
    params: Object = {
        "sortBy": f"SORT_BY_{args.sort_by.upper()}",
        "orderBy": f"ORDER_BY_{args.order_by.upper()}",
    }
    if args.workspace_names:
        params["workspaceNames"] = args.workspace_names.split(",")
    models = read_pages(session, "/api/v1/models", "models", args, params)
    if args.json:
        output.print_json([_as_json(model) for model in models])
    else:
        _show_models(models)


def create(session: Session, args: argparse.Namespace) -> None:
    """Create a model. Its name must be unique."""
    body = {"name": args.name, "workspaceName": args.workspace_name, "description": args.description}
    made = session.post("/api/v1/models", {key: value for key, value in body.items() if value is not None})
    if args.json:
        output.print_json(_as_json(made["model"]))
    else:
        _show_models([made["model"]], described=True)


def describe(session: Session, args: argparse.Namespace) -> None:
    """Show a model and its latest version, or the requested one."""
    path = f"/api/v1/models/{in_path(args.name)}"
    model = session.get(path)["model"]
    if args.version is None:
        versions = _versions(session, path, limit=1)["modelVersions"]
    else:
        versions = [session.get(f"{path}/versions/{args.version}")["modelVersion"]]
    if args.json:
        output.print_json({**_as_json(model), "model": model, "modelVersions": versions})
        return
    _show_models([model], described=True)
    if versions:
        print()
        _show_versions(versions)


def register_version(session: Session, args: argparse.Namespace) -> None:
    """Register a completed checkpoint as the next version."""
    path = f"/api/v1/models/{in_path(args.name)}/versions"
    made = session.post(path, {"checkpointUuid": args.uuid})["modelVersion"]
    if args.json:
        output.print_json({"modelVersion": made})
    else:
        print(f"Registered checkpoint {args.uuid} as version {made['version']} of model {args.name}")


def list_versions(session: Session, args: argparse.Namespace) -> None:
    """List all versions, latest first."""
    answer = _versions(session, f"/api/v1/models/{in_path(args.name)}")
    if args.json:
        output.print_json(answer)
    else:
        _show_versions(answer["modelVersions"])


def move(session: Session, args: argparse.Namespace) -> None:
    """Move a model to another workspace."""
    name = args.workspace_name or args.workspace
    if not name:
        raise Failure("give the target workspace: -w WORKSPACE")
    _model(session, args.name).move_to_workspace(name)
    print(f"Moved model {args.name} to workspace {name}")


def _model(session: Session, name: str) -> Model:
    from determined.experimental import _model

    return _model.get(session, name)


def _versions(session: Session, path: str, limit: int = 0) -> Object:
    """Return a model and its versions, latest first: `limit` of them, or all."""
    params = {"sortBy": "SORT_BY_VERSION", "orderBy": "ORDER_BY_DESC", "limit": limit}
    answer: Object = session.get(f"{path}/versions", params)
    return answer


def _as_json(model: Object) -> Object:
    """Return the master's response, adding the times under their names in 0.25."""
    times = {"creation_time": "creationTime", "last_updated_time": "lastUpdatedTime"}
    return {**model, **{ours: _instant(model.get(theirs)) for ours, theirs in times.items()}}


def _instant(text: str | None) -> str | None:
    return instant.parse(text).isoformat() if text else None


def _show_models(models: list[Object], described: bool = False) -> None:
    """Print models. The columns of 0.25 come first; its lists have no description."""
    output.table(_headers(described), [_model_row(model, described) for model in models])


def _headers(described: bool) -> list[str]:
    place = ["Description", "Workspace ID"] if described else ["Workspace ID"]
    headers = ["ID", "Name", *place, "Creation Time", "Last Updated Time", "Metadata", "# of Versions"]
    return [*headers, "Username", "Labels", *(() if described else ("Description",))]


def _model_row(model: Object, described: bool) -> list[Any]:
    description = [model.get("description")]
    return [
        model["id"],
        model["name"],
        *(description if described else ()),
        model.get("workspaceId"),
        formatting.when(model.get("creationTime")),
        formatting.when(model.get("lastUpdatedTime")),
        formatting.compact(model.get("metadata")),
        model.get("numVersions"),
        model.get("username"),
        formatting.listed(model.get("labels")),
        *(() if described else description),
    ]


def _show_versions(versions: list[Object]) -> None:
    headers = ["Version #", "Trial ID", "Batch #", "Checkpoint UUID", "Validation Metrics", "Metadata"]
    output.table(headers, [_version_row(version) for version in versions])


def _version_row(version: Object) -> list[Any]:
    checkpoint = version.get("checkpoint") or {}
    training, metadata = checkpoint.get("training") or {}, checkpoint.get("metadata") or {}
    return [
        version["version"],
        training.get("trialId"),
        metadata.get("steps_completed"),
        checkpoint.get("uuid"),
        formatting.compact((training.get("validationMetrics") or {}).get("avgMetrics")),
        formatting.compact(metadata),
    ]


NOUN = Noun(
    "model m",
    "manage models and their versions",
    (
        Verb(
            "list ls",
            "list models",
            list_models,
            (
                arg("--sort-by", type=_sort, choices=_SORTS, default="last_updated_time", help="sort key"),
                arg("--order-by", choices=("asc", "desc"), default="asc", help="sort direction, default asc"),
                arg(
                    "-w",
                    "--workspace-names",
                    metavar="NAMES",
                    help="only of these workspaces, separated by commas",
                ),
                _JSON,
                *paging_args(),
            ),
        ),
        Verb(
            "create",
            "create a model",
            create,
            (
                arg("name", help="name of the model"),
                arg("-w", "--workspace-name", metavar="NAME", help="workspace of the model"),
                arg("--description", metavar="TEXT", help="what it is for"),
                _JSON,
            ),
        ),
        Verb(
            "describe",
            "describe a model",
            describe,
            (_NAME, arg("--version", type=int, metavar="N", help="default: the newest"), _JSON),
        ),
        Verb(
            "register-version",
            "register a version of a model",
            register_version,
            (_NAME, arg("uuid", help="id of the checkpoint"), _JSON),
        ),
        Verb("list-versions", "list the versions of a model", list_versions, (_NAME, _JSON)),
        Verb(
            "move",
            "move a model",
            move,
            (
                _NAME,
                arg("workspace", nargs="?", help="target workspace"),
                arg("-w", "--workspace-name", metavar="NAME", help="target workspace"),
            ),
        ),
    ),
    default="list",
)
