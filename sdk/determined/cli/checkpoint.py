"""`det checkpoint`: saved training state (client spec, section 6)."""

from __future__ import annotations

import argparse
from pathlib import Path

from determined.cli import download as downloads
from determined.cli import formatting, output
from determined.cli.grammar import Noun, Verb, arg
from determined.transport.rest import Session

_UUID = arg("uuid", help="id of the checkpoint")
_YES = arg("-y", "--yes", action="store_true", help="do not ask")


def _uuids(text: str) -> list[str]:
    uuids = [part.strip() for part in text.split(",") if part.strip()]
    if not uuids:
        raise argparse.ArgumentTypeError("name at least one checkpoint; several are separated by commas")
    return uuids


_UUIDS = arg("uuids", type=_uuids, metavar="UUIDS", help="one id, or several with commas")


def describe(session: Session, args: argparse.Namespace) -> None:
    """Show a checkpoint's origin and details."""
    checkpoint = session.get(f"/api/v1/checkpoints/{args.uuid}")["checkpoint"]
    training, metadata = checkpoint.get("training") or {}, checkpoint.get("metadata") or {}
    metrics = (training.get("validationMetrics") or {}).get("avgMetrics")
    row = [
        training.get("experimentId"),
        training.get("trialId"),
        metadata.get("steps_completed"),
        formatting.when(checkpoint.get("reportTime")),
        checkpoint["uuid"],
        formatting.compact(metrics),
        formatting.compact(metadata),
    ]
    headers = ["Experiment ID", "Trial ID", "Steps Completed", "Report Time", "Checkpoint UUID"]
    output.table([*headers, "Validation Metrics", "Metadata"], [row])


def download(session: Session, args: argparse.Namespace) -> None:
    """Download the files. A directory that already holds them is left unchanged."""
    from determined.experimental import _checkpoint

    checkpoint = _checkpoint.get(session, args.uuid)
    path = downloads.fetch(checkpoint, args.output_dir, args.mode, args.quiet)
    downloads.show([(checkpoint, path)], args.quiet)


def delete(session: Session, args: argparse.Namespace) -> None:
    """Delete the files of checkpoints. The deletion continues after the response."""
    question = f"Deleting {_counted(args.uuids)} permanently removes their files. Do you wish to proceed?"
    if not args.yes and not output.confirm(question):
        print("Aborting checkpoint deletion.")
        return
    session.delete("/api/v1/checkpoints", {"checkpointUuids": args.uuids})
    print(f"Deletion of checkpoints {', '.join(args.uuids)} is in progress")


def remove_files(session: Session, args: argparse.Namespace) -> None:
    """Delete the files that match globs. Without globs, refresh the recorded files."""
    question = (
        f"Files of {_counted(args.uuids)} that match {', '.join(args.glob)} will be permanently deleted. "
        "Do you wish to proceed?"
    )
    if args.glob and not args.yes and not output.confirm(question):
        print("Aborting checkpoint removal.")
        return
    session.post("/api/v1/checkpoints/rm", {"checkpointUuids": args.uuids, "checkpointGlobs": args.glob})
    doing = "Removal of files from" if args.glob else "No glob patterns provided, refreshing resources of"
    print(f"{doing} checkpoints {', '.join(args.uuids)} is in progress.")


def _counted(uuids: list[str]) -> str:
    return "1 checkpoint" if len(uuids) == 1 else f"{len(uuids)} checkpoints"


NOUN = Noun(
    "checkpoint c",
    "show, download and delete checkpoints",
    (
        Verb(
            "download",
            "download a checkpoint",
            download,
            (
                _UUID,
                arg("-o", "--output-dir", type=Path, metavar="DIR", help="default: checkpoints/UUID"),
                downloads.MODE,
                downloads.QUIET,
            ),
        ),
        Verb("describe", "describe a checkpoint", describe, (_UUID,)),
        Verb("delete", "delete checkpoints", delete, (_UUIDS, _YES)),
        Verb(
            "rm",
            "remove files of checkpoints",
            remove_files,
            (
                _UUIDS,
                arg(
                    "--glob",
                    action="append",
                    default=[],
                    metavar="GLOB",
                    help="files to remove, may be repeated; without it, the recorded files are refreshed",
                ),
                _YES,
            ),
        ),
    ),
)
