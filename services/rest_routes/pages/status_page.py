"""A status page of experiments, their best trials and workers, rendered on the server and refreshed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from itertools import islice
from string import Template

from services.catalogue.display_state import experiment_state, trial_state
from services.catalogue.domain import Experiment, State, Worker
from services.catalogue.usage import HIDDEN
from services.catalogue.visibility import Visibility
from services.rest_routes.pages.plain_pages import plain_page
from services.rest_routes.present.agent import live_allocations

PAGE = Template(plain_page("status.html"))
NEWEST = 20
BEST = 5
NOTHING_YET = (
    "<section><h2>No experiment yet</h2><p class=soft>Submit one with "
    "<code>det experiment create config.yaml .</code> and watch it here.</p></section>"
)


def page(cluster: str, live: str) -> str:
    """The whole page. `live` is the result of `fragment`, or empty."""
    return PAGE.substitute(cluster=escape(cluster), live=live)


def fragment(
    state: State, visibility: Visibility, progress: Mapping[int, float], problems: Iterable[str] = ()
) -> str:
    """The part that changes. `problems` lists the cluster's problems, one sentence each."""
    lines = "".join(f"<li>{escape(problem)}" for problem in problems)
    head = f"<section class=ERROR><h2>Something is wrong</h2><ul>{lines}</ul></section>" if lines else ""
    return head + _content(state, visibility, progress)


def _content(state: State, visibility: Visibility, progress: Mapping[int, float]) -> str:
    visible = visibility.filter_visible(
        lambda experiment: visibility.includes_experiment(experiment.id), state.experiments.values()
    )
    newest = sorted(visible, key=lambda experiment: -experiment.id)[:NEWEST]
    if not newest:
        return NOTHING_YET + _workers(state, visibility)
    ranked = next((experiment for experiment in newest if experiment.best_trial is not None), None)
    best = _best_trials(state, ranked) if ranked is not None else ""
    return _experiments(newest, state, progress) + best + _workers(state, visibility)


def _experiments(newest: Iterable[Experiment], state: State, progress: Mapping[int, float]) -> str:
    head = ("ID", "Name", "State", "Progress", "#Trials", "Best trial", "#Best metric")
    rows = [
        (
            str(experiment.id),
            f"{escape(experiment.name)}<br><span class=soft>{escape(experiment.reason)}</span>",
            _state(experiment_state(experiment)),
            _progress(1.0 if experiment.state == "COMPLETED" else progress.get(experiment.id)),
            _trials(experiment, state),
            "" if experiment.best_trial is None else str(experiment.best_trial),
            _metric(experiment.best_metric, experiment.metric),
        )
        for experiment in newest
    ]
    return f"<section><h2>Experiments</h2>{_table(head, rows)}</section>"


def _trials(experiment: Experiment, state: State) -> str:
    return f"{experiment.trials - state.open_trials.count(experiment.id)} of {experiment.trials} ended"


def _best_trials(state: State, experiment: Experiment) -> str:
    trials = (state.trials[id] for id in islice(state.ranked_trials.ids(experiment.id), BEST))
    head = ("Trial", "State", "Hyperparameters", "#Steps", f"#{escape(experiment.metric)}")
    rows = [
        (
            str(trial.id),
            _state(trial_state(trial)),
            escape(", ".join(f"{name} {_short(value)}" for name, value in trial.hparams.items())),
            str(trial.steps),
            _metric(trial.best.metric if trial.best else None, ""),
        )
        for trial in trials
    ]
    title = f"Best trials of experiment {experiment.id}"
    return f"<section><h2>{title}</h2>{_table(head, rows)}</section>"


def _workers(state: State, visibility: Visibility) -> str:
    users = {
        (part.worker_id, slot): f"trial {run.trial_id}" if visibility.includes_run(run.id) else HIDDEN
        for run in live_allocations(state)
        for part in run.members
        for slot in part.slots
    }
    head = ("Worker", "Slots", "#Used")
    rows = [_worker(worker, users) for _, worker in sorted(state.workers.items())]
    if not rows:
        return "<section><h2>Workers</h2><p class=soft>None is here; experiments wait for one.</p></section>"
    return f"<section><h2>Workers</h2>{_table(head, rows)}</section>"


def _worker(worker: Worker, users: Mapping[tuple[str, int], str]) -> tuple[str, str, str]:
    cells = []
    for slot in worker.slots:
        busy = (worker.id, slot.id) in users
        what = users.get((worker.id, slot.id), "free")
        title = escape(f"{slot.kind} {slot.id}: {what}")
        cells.append(f'<span class="slot{" busy" * busy}" title="{title}"></span>')
    used = sum((worker.id, slot.id) in users for slot in worker.slots)
    slots = f"<span class=slots>{''.join(cells)}</span>"
    return escape(worker.id), slots, f"{used} of {len(worker.slots)}"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of cells that are already HTML. `#` before a heading marks a numeric column."""
    heads = list(head)
    kinds = [" class=num" if heading.startswith("#") else "" for heading in heads]
    top = "".join(f"<th{kind}>{heading.lstrip('#')}" for heading, kind in zip(heads, kinds, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{cell}" for cell, kind in zip(row, kinds, strict=True)) for row in rows
    )
    return f"<table><thead><tr>{top}<tbody>{body}</table>"


def _state(name: str) -> str:
    return f'<span class="state {name}">{name.replace("_", " ").lower()}</span>'


def _progress(share: float | None) -> str:
    if share is None:
        return ""
    return f"<progress value={share:.3f} aria-label=progress></progress> {share:.0%}"


def _metric(value: float | None, name: str) -> str:
    if value is None:
        return ""
    return f"{value:.5g} <span class=soft>{escape(name)}</span>" if name else f"{value:.5g}"


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
