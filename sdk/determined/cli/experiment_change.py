"""`det experiment set`, `label`, `archive`, `delete`: changes to existing experiments (client spec, 5)."""

from __future__ import annotations

import argparse
from typing import Any

from determined.cli import formatting, output
from determined.cli.grammar import Noun, Verb, arg
from determined.transport.rest import Session

_ID = arg("experiment_id", type=int, help="number of the experiment")
_YES = arg("--yes", action="store_true", help="do not ask")


def _path(args: argparse.Namespace) -> str:
    return f"/api/v1/experiments/{args.experiment_id}"


def _patch(
    session: Session, args: argparse.Namespace, changes: dict[str, Any], what: str, to: object
) -> None:
    session.patch(_path(args), changes)
    print(f"Set {what} of experiment {args.experiment_id} to {to}")


def archive(session: Session, args: argparse.Namespace) -> None:
    """Hide an experiment from the default lists."""
    session.post(f"{_path(args)}/archive")
    print(f"Archived experiment {args.experiment_id}")


def unarchive(session: Session, args: argparse.Namespace) -> None:
    """Show an experiment in the default lists again."""
    session.post(f"{_path(args)}/unarchive")
    print(f"Unarchived experiment {args.experiment_id}")


def delete(session: Session, args: argparse.Namespace) -> None:
    """Delete an experiment with its checkpoints, metrics and logs. Continues after the response."""
    question = (
        f"Deleting experiment {args.experiment_id} permanently removes its checkpoints, metrics and logs. "
        "Do you wish to proceed?"
    )
    if not args.yes and not output.confirm(question):
        print("Aborting experiment deletion.")
        return
    session.delete(_path(args))
    print(f"Deletion of experiment {args.experiment_id} is in progress")


def set_name(session: Session, args: argparse.Namespace) -> None:
    """Rename an experiment."""
    _patch(session, args, {"name": args.name}, "name", f"'{args.name}'")


def set_description(session: Session, args: argparse.Namespace) -> None:
    """Set the description of an experiment."""
    _patch(session, args, {"description": args.description}, "description", f"'{args.description}'")


def set_priority(session: Session, args: argparse.Namespace) -> None:
    """Set the position in the queue of a pool with priorities."""
    _patch(session, args, {"resources": {"priority": args.priority}}, "`priority`", args.priority)


def set_weight(session: Session, args: argparse.Namespace) -> None:
    """Set the fair share weight."""
    _patch(session, args, {"resources": {"weight": args.weight}}, "`weight`", args.weight)


def set_max_slots(session: Session, args: argparse.Namespace) -> None:
    """Set the maximum number of slots of all trials together."""
    _patch(session, args, {"resources": {"maxSlots": args.max_slots}}, "`max_slots`", args.max_slots)


def set_gc_policy(session: Session, args: argparse.Namespace) -> None:
    """Set how many checkpoints are kept. For an ended experiment, the others are deleted immediately."""
    policy = {
        "saveExperimentBest": args.save_experiment_best,
        "saveTrialBest": args.save_trial_best,
        "saveTrialLatest": args.save_trial_latest,
    }
    _show_what_goes(session, args)
    question = (
        f"Keep the best {args.save_experiment_best} checkpoints of experiment {args.experiment_id}, "
        f"and of each trial the best {args.save_trial_best} and the latest {args.save_trial_latest}? "
        "The others are permanently deleted. Do you wish to proceed?"
    )
    if not args.yes and not output.confirm(question):
        print("Aborting.")
        return
    session.patch(_path(args), {"checkpointStorage": policy})
    print(f"Set GC policy of experiment {args.experiment_id}")


def _show_what_goes(session: Session, args: argparse.Namespace) -> None:
    names = ("save_experiment_best", "save_trial_best", "save_trial_latest")
    params = {name: getattr(args, name) for name in names}
    answer = session.get(f"/experiments/{args.experiment_id}/preview_gc", params)
    rows = [
        [
            (checkpoint.get("training") or {}).get("trialId"),
            (checkpoint.get("metadata") or {}).get("steps_completed"),
            formatting.state(checkpoint["state"]),
            (checkpoint.get("training") or {}).get("searcherMetric"),
            checkpoint["uuid"],
        ]
        for checkpoint in answer.get("checkpoints") or []
    ]
    print(f"Checkpoints that this policy deletes: {len(rows)}")
    if rows:
        metric = answer.get("metric_name") or "Searcher Metric"
        output.table(["Trial ID", "# of Batches", "State", metric, "UUID"], rows)


def move(session: Session, args: argparse.Namespace) -> None:
    """Move an experiment to a project of a workspace, both given by name."""
    from determined.cli.workspace import project_id

    destination = project_id(session, args)
    session.post(f"{_path(args)}/move", {"destinationProjectId": destination})
    print(f'Moved experiment {args.experiment_id} to project "{args.project_name}"')


def add_label(session: Session, args: argparse.Namespace) -> None:
    """Add a label to an experiment."""
    # The REST API of 0.25 sets all labels at once: of two users who add one at the same time, the later
    # wins.
    labels = _labels(session, args)
    if args.label not in labels:
        session.patch(_path(args), {"labels": [*labels, args.label]})
    print(f"Added label '{args.label}' to experiment {args.experiment_id}")


def remove_label(session: Session, args: argparse.Namespace) -> None:
    """Remove a label from an experiment."""
    labels = _labels(session, args)
    if args.label not in labels:
        output.warn(f"experiment {args.experiment_id} had no label '{args.label}'")
    else:
        session.patch(_path(args), {"labels": [label for label in labels if label != args.label]})
    print(f"Removed label '{args.label}' from experiment {args.experiment_id}")


def _labels(session: Session, args: argparse.Namespace) -> list[str]:
    return list(session.get(_path(args))["experiment"].get("labels") or [])


def slots_or_none(text: str) -> int | None:
    """Parse a number of slots; `none` removes the limit."""
    return None if text.lower() == "none" else int(text)


def _keep(name: str, what: str) -> Any:
    return arg(name, type=int, required=True, metavar="N", help=what)


_SET = Noun(
    "set",
    "change an experiment",
    (
        Verb("name", "rename an experiment", set_name, (_ID, arg("name", help="the new name"))),
        Verb(
            "description",
            "describe an experiment",
            set_description,
            (_ID, arg("description", help="the new description")),
        ),
        Verb(
            "priority",
            "set the priority of an experiment",
            set_priority,
            (_ID, arg("priority", type=int, help="1 to 99; smaller numbers run first")),
        ),
        Verb(
            "weight",
            "set the weight of an experiment",
            set_weight,
            (_ID, arg("weight", type=float, help="fair share weight; the usual one is 1")),
        ),
        Verb(
            "max-slots",
            "limit the slots of an experiment",
            set_max_slots,
            (_ID, arg("max_slots", type=slots_or_none, help="a number, or none")),
        ),
        Verb(
            "gc-policy",
            "set how many checkpoints of an experiment are kept",
            set_gc_policy,
            (
                _ID,
                _keep("--save-experiment-best", "the best of the experiment"),
                _keep("--save-trial-best", "the best of each trial"),
                _keep("--save-trial-latest", "the latest of each trial"),
                _YES,
            ),
        ),
    ),
)
_LABEL = Noun(
    "label",
    "label experiments",
    (
        Verb("add", "add a label", add_label, (_ID, arg("label", help="the label"))),
        Verb("remove", "remove a label", remove_label, (_ID, arg("label", help="the label"))),
    ),
)
CHILDREN: tuple[Noun | Verb, ...] = (
    Verb("archive", "archive an experiment", archive, (_ID,)),
    Verb("unarchive", "unarchive an experiment", unarchive, (_ID,)),
    Verb("delete", "delete an experiment", delete, (_ID, _YES)),
    Verb(
        "move",
        "move an experiment",
        move,
        (
            _ID,
            arg("workspace_name", help="name of the workspace"),
            arg("project_name", help="project to move it to"),
        ),
    ),
    _SET,
    _LABEL,
)
