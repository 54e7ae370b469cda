"""`det notebook`: JupyterLab on the cluster, in a browser (client spec, section 6)."""

from __future__ import annotations

import argparse
import webbrowser
from urllib.parse import urljoin

from determined.cli import output, task_verbs
from determined.cli.grammar import Noun, Verb, arg
from determined.transport.rest import Session

KIND = task_verbs.Kind("notebook", "notebook")


def start(session: Session, args: argparse.Namespace) -> None:
    """Start one, and open it once it answers; with `--preview` only show what its configuration would be."""
    if args.preview:
        answer = task_verbs.submit(session, KIND, args, {}, preview=True)
        output.print_yaml(answer["config"])
        return
    made = task_verbs.start(session, KIND, args, {})
    if args.detach:
        print(made["id"])
        return
    print(f"Launched notebook (id: {made['id']}).", flush=True)
    _show(session, made["id"], browser=not args.no_browser)


def show(session: Session, args: argparse.Namespace) -> None:
    """Open one that runs."""
    _show(session, task_verbs.find(session, KIND, args.task_id), browser=True)


def _show(session: Session, id: str, browser: bool) -> None:
    one = task_verbs.ready(session, KIND, id, lambda one: bool(one.get("serviceAddress")))
    address = urljoin(f"{session.master}/", str(one["serviceAddress"]))
    print(f"Jupyter Notebook is running at: {address}", flush=True)
    if browser and not webbrowser.open(address):
        print("No browser can be opened here; open the address yourself.")


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
                arg("--no-browser", action="store_true", help="only print the address"),
                arg("--preview", action="store_true", help="only show the configuration it would have"),
            ),
        ),
        Verb("open", "open a notebook", show, (arg("task_id", help="its id, or how it begins"),)),
        *task_verbs.verbs(KIND),
    ),
    default="list",
)
