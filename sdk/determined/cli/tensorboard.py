"""`det tensorboard`: curves of experiments in a browser (client spec, section 6)."""

from __future__ import annotations

import argparse
import webbrowser
from typing import Any
from urllib.parse import urljoin

from determined.cli import formatting, task_verbs
from determined.cli.failure import Failure
from determined.cli.grammar import Noun, Verb, arg
from determined.transport.rest import Session

Object = dict[str, Any]


def _joined(name: str) -> Any:
    return lambda one: formatting.listed([str(id) for id in one.get(name) or []])


KIND = task_verbs.Kind(
    "tensorboard",
    "TensorBoard",
    (("experimentIds", _joined("experimentIds")), ("trialIds", _joined("trialIds"))),
)


def start(session: Session, args: argparse.Namespace) -> None:
    """Start one over experiments or trials, and open it once it answers."""
    if not args.experiment_ids and not args.trial_ids:
        raise Failure("say what to show: ids of experiments, or of trials with -t")
    ids = {"experimentIds": args.experiment_ids, "trialIds": args.trial_ids or []}
    made = task_verbs.start(session, KIND, args, {}, **ids)
    if args.detach:
        print(made["id"])
        return
    print(f"Launched TensorBoard (id: {made['id']}).", flush=True)
    _show(session, made["id"], browser=not args.no_browser)


def show(session: Session, args: argparse.Namespace) -> None:
    """Open one that runs."""
    _show(session, task_verbs.find(session, KIND, args.task_id), browser=True)


def _show(session: Session, id: str, browser: bool) -> None:
    one = task_verbs.ready(session, KIND, id, lambda one: bool(one.get("serviceAddress")))
    address = urljoin(f"{session.master}/", str(one["serviceAddress"]))
    print(f"TensorBoard is running at: {address}", flush=True)
    if browser and not webbrowser.open(address):
        print("No browser can be opened here; open the address yourself.")


def _ids(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}' is not an id, or ids with commas") from error


def _flat(found: list[list[int]]) -> list[int]:
    return [id for ids in found for id in ids]


class _Gather(argparse.Action):
    """Ids as `1 2` and as `1,2`."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        setattr(namespace, self.dest, _flat(values))


NOUN = Noun(
    "tensorboard",
    "see curves of experiments in TensorBoard",
    (
        Verb(
            "start",
            "start a TensorBoard",
            start,
            (
                arg("experiment_ids", type=_ids, nargs="*", action=_Gather, help="ids of experiments"),
                arg(
                    "-t",
                    "--trial-ids",
                    type=_ids,
                    nargs="+",
                    action=_Gather,
                    metavar="ID",
                    help="ids of trials",
                ),
                *task_verbs.CONFIG_ARGS,
                arg("--no-browser", action="store_true", help="only print the address"),
            ),
        ),
        Verb("open", "open a TensorBoard", show, (arg("task_id", help="its id, or how it begins"),)),
        *task_verbs.verbs(KIND),
    ),
    default="list",
)
