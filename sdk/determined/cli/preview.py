"""`det preview-search`: shows what a search would do (client spec, section 6)."""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

from determined.cli import output
from determined.cli.config_file import read_config
from determined.cli.grammar import Verb, arg
from determined.transport.rest import Session


def preview(session: Session, args: argparse.Namespace) -> None:
    """Print the searcher section, and how many trials train how far."""
    config = read_config(args.config_file)[1]
    results: dict[str, int] = session.post("/searcher/preview", config)["results"]
    print("Using search configuration:")
    output.print_yaml(config.get("searcher") or {})
    print(f"\nThis search will create a total of {sum(results.values())} trial(s).")
    output.table(["Trials", "Breakdown"], [[count, in_words(steps)] for steps, count in results.items()])


def in_words(steps: str) -> str:
    """Convert `"16 16 V"` to `2 x train for 16, 1 x validation`."""
    parts = []
    for step, same in itertools.groupby(steps.split()):
        doing = "validation" if step == "V" else f"train for {step}"
        parts.append(f"{sum(1 for _ in same)} x {doing}")
    return ", ".join(parts) or "nothing to train"


VERB = Verb(
    "preview-search",
    "preview a search",
    preview,
    (arg("config_file", type=Path, help="experiment configuration (YAML)"),),
)
