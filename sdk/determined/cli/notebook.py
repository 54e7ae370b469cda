"""`det notebook`: JupyterLab on the cluster, in a browser (client spec, section 6)."""

from __future__ import annotations

import argparse

from determined.cli import output, task_verbs
from determined.cli.grammar import Noun, Verb, arg
from determined.transport.rest import Session

KIND = task_verbs.Kind("notebook", "notebook", page="Jupyter Notebook")


def start(session: Session, args: argparse.Namespace) -> None:
    """Start a notebook and open it once it is ready. With `--preview`, only show the configuration."""
    if args.preview:
        answer = task_verbs.submit(session, KIND, args, {}, preview=True)
        output.print_yaml(answer["config"])
        return
    made = task_verbs.start(session, KIND, args, {})
    task_verbs.launched(session, KIND, args, made)


NOUN = Noun(
    "notebook",
    "run JupyterLab on the cluster",
    (
        Verb(
            "start",
            "start a notebook",
            start,
            (
                *task_verbs.CONFIG_ARGS,
                task_verbs.VOLUME,
                task_verbs.NO_BROWSER,
                arg("--preview", action="store_true", help="only show the resulting configuration"),
            ),
        ),
        task_verbs.open_verb(KIND),
        *task_verbs.verbs(KIND),
    ),
    default="list",
)
