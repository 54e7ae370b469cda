"""`det tensorboard`: charts of experiments in a browser (client spec, section 6)."""

from __future__ import annotations

import argparse
from typing import Any

from determined.cli import formatting, task_verbs
from determined.cli.failure import Failure
from determined.cli.grammar import Noun, Verb, arg
from determined.transport.rest import Session

Object = dict[str, Any]


def _joined(name: str) -> Any:
    return lambda task: formatting.listed([str(id) for id in task.get(name) or []])


KIND = task_verbs.Kind(
    "tensorboard",
    "TensorBoard",
    (("experimentIds", _joined("experimentIds")), ("trialIds", _joined("trialIds"))),
    page="TensorBoard",
)


def start(session: Session, args: argparse.Namespace) -> None:
    """Start a TensorBoard for experiments or trials, and open it once it is ready."""
    if not args.experiment_ids and not args.trial_ids:
        raise Failure("give what to show: ids of experiments, or of trials with -t")
    ids = {"experimentIds": args.experiment_ids, "trialIds": args.trial_ids or []}
    made = task_verbs.start(session, KIND, args, {}, **ids)
    task_verbs.launched(session, KIND, args, made)


def _ids(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}' is not an id, or ids with commas") from error


def _flat(lists: list[list[int]]) -> list[int]:
    return [id for ids in lists for id in ids]


class _Gather(argparse.Action):
    """Accepts ids as `1 2` and as `1,2`."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        setattr(namespace, self.dest, _flat(values))


NOUN = Noun(
    "tensorboard",
    "run TensorBoard on the cluster",
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
                task_verbs.NO_BROWSER,
            ),
        ),
        task_verbs.open_verb(KIND),
        *task_verbs.verbs(KIND),
    ),
    default="list",
)
