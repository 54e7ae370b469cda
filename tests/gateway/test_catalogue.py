"""The catalogue is a fold: lost, it comes back the same."""

from __future__ import annotations

import random
from typing import Any

import pytest
import sqlalchemy as sa

from det_contracts.events import metrics, searcher
from services.catalogue import audit, runs, usage_days
from services.catalogue.store import CHECKPOINTS, EXPERIMENTS, METADATA, TRIALS
from services.gateway.app import RULES
from services.kit import database, migrate
from services.kit.rules import dump
from services.kit.testing import Fold
from tests.gateway import stories as story
from tests.gateway.harness import Harness


def _history(seed: int) -> list[Any]:
    """Three experiments with their ups and downs, interleaved by chance."""
    rng = random.Random(seed)
    threads = [[story.worker_here()]]
    for id in (1, 2, 3):
        threads.append([story.created(id), searcher.ExperimentActivated(id, "go")])
        for trial_id in (10 * id, 10 * id + 1):
            uuid = f"u-{trial_id}"
            threads[-1] += [
                story.trial_created(trial_id, id, lr=trial_id / 100),
                *story.running(trial_id, 0, id),
                story.validated(trial_id, 100, rng.random()),
                story.stored(trial_id, uuid, 100, id),
                searcher.ExperimentPaused(id, "pause"),
                story.allocation_ended(trial_id, id),
                searcher.ExperimentActivated(id, "again"),
                *story.running(trial_id, 0, id, run=2),
                story.validated(trial_id, 80, rng.random(), run=2),
                story.allocation_ended(trial_id, id, run=2),
                story.trial_ended(trial_id, rng.choice(["COMPLETED", "ERROR"])),
                story.deleted(uuid, experiment_id=id),
            ]
        threads[-1].append(searcher.ExperimentStopping(id, "STOPPING_COMPLETED", "done"))
        threads[-1].append(searcher.ExperimentEnded(id, "COMPLETED", "done"))
    history = []
    while any(threads):
        history.append(rng.choice([thread for thread in threads if thread]).pop(0))
    return history


def _tables(gateway: Harness) -> dict[str, list[Any]]:
    def work(connection):
        return {
            table.name: [tuple(row) for row in connection.execute(table.select().order_by(table.c[0]))]
            for table in (EXPERIMENTS, TRIALS, CHECKPOINTS)
        }

    return gateway.run(gateway.catalogue.read(work))


@pytest.mark.parametrize("seed", range(3))
def test_a_rebuilt_catalogue_equals_the_live_one(tmp_path, seed):
    live = Harness(tmp_path)
    rng = random.Random(seed)
    history = _history(seed)
    while history:
        size = rng.randint(1, 9)
        live.apply(*history[:size])
        history = history[size:]
    (tmp_path / "rebuilt").mkdir()
    rebuilt = Harness(tmp_path / "rebuilt", live)
    assert dump(rebuilt.catalogue.state) == dump(live.catalogue.state)
    assert _tables(rebuilt) == _tables(live)
    assert len(_tables(live)["trials"]) == 6
    rebuilt.log_in()
    live.log_in()
    for path in ("experiments", "experiments/2/trials", "experiments/3/checkpoints", "agents", "tasks"):
        ours, theirs = live.get(f"/api/v1/{path}"), rebuilt.get(f"/api/v1/{path}")
        assert ours == theirs
    rebuilt.close()
    live.close()


def test_a_snapshot_carries_everything_over_a_restart(tmp_path):
    first = Harness(tmp_path)
    history = _history(7)
    first.apply(*history[:40])
    before = dump(first.catalogue.state)
    again = Harness(tmp_path, first)
    assert dump(again.catalogue.state) == before
    again.apply(*history[40:])
    first.settle()
    assert dump(again.catalogue.state) == dump(first.catalogue.state)
    again.close()
    first.close()


def test_every_prefix_of_a_history_folds_without_complaint():
    for seed in range(20):
        fold = Fold(RULES).apply(*_history(seed))
        experiment = fold.state.experiments[1]
        assert (experiment.queued, experiment.running) == (0, 0)
        assert fold.state.live == {}
        assert experiment.checkpoints == 0
        best = [t.best for t in fold.state.trials.values() if t.experiment_id == 1 and t.best]
        assert experiment.best_metric == min(v.metric for v in best)
        # The second run began behind step 100, so nothing of the first is left.
        assert {v.steps for v in fold.state.validations.values()} == {80}


def test_what_scripts_and_workers_say_of_unknown_things_passes_by():
    fold = Fold(RULES)
    before = dump(fold.state)
    fold.apply(
        story.validated(9, 1, 0.1), story.stored(9, "u", 1), story.started(9), story.allocation_ended(9)
    )
    fold.apply(story.deleted("u"))
    assert dump(fold.state) == before


def test_a_trial_that_ends_a_second_time_is_settled_only_once_its_last_reports_are_judged():
    """Else its experiment would leave memory, and its columns be kept, before they are final."""
    judged = metrics.Settled(trial_id=10, reason="all is judged")
    fold = Fold(RULES).apply(
        story.created(1), story.trial_created(10), story.trial_ended(10, "ERROR"), judged
    )
    assert fold.state.trials[10].settled
    fold.apply(story.trial_ended(10))
    assert not fold.state.trials[10].settled
    assert fold.apply(judged).state.trials[10].settled


def test_the_migration_makes_the_tables_that_the_code_means(tmp_path):
    opened = migrate.open_database(f"sqlite:///{tmp_path / 'a.db'}", "gateway")
    inspector = sa.inspect(opened.engine)
    meant = {
        **METADATA.tables,
        **runs.METADATA.tables,
        **usage_days.METADATA.tables,
        "audit": audit.AUDIT,
        "positions": database.POSITIONS,
        "snapshots": database.SNAPSHOTS,
    }
    for name, table in meant.items():
        nullable = {column["name"]: column["nullable"] for column in inspector.get_columns(name)}
        assert nullable == {column.name: bool(column.nullable) for column in table.columns}
        indexed = {tuple(index["column_names"]) for index in inspector.get_indexes(name)}
        assert indexed == {tuple(column.name for column in index.columns) for index in table.indexes}
    opened.close()
