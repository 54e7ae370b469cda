"""`det checkpoint`: what trainings saved (client spec, section 6)."""

from __future__ import annotations

import argparse

from determined.cli import output, wording
from determined.cli.grammar import Noun, Verb, arg
from determined.transport.rest import Session


def describe(session: Session, args: argparse.Namespace) -> None:
    """Where a checkpoint comes from and what is known about it."""
    found = session.get(f"/api/v1/checkpoints/{args.uuid}")["checkpoint"]
    training, metadata = found.get("training") or {}, found.get("metadata") or {}
    metrics = (training.get("validationMetrics") or {}).get("avgMetrics")
    row = [
        training.get("experimentId"),
        training.get("trialId"),
        metadata.get("steps_completed"),
        wording.when(found.get("reportTime")),
        found["uuid"],
        wording.compact(metrics),
        wording.compact(metadata),
    ]
    headers = ["Experiment ID", "Trial ID", "Steps Completed", "Report Time", "UUID", "Validation Metrics"]
    output.table([*headers, "Metadata"], [row])


NOUN = Noun(
    "checkpoint c",
    "look at checkpoints",
    (Verb("describe", "describe a checkpoint", describe, (arg("uuid", help="id of the checkpoint"),)),),
)
