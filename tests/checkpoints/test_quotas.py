"""Quotas of storage: which bytes count for whom and until when, and what scripts are told."""

import pytest

from det_contracts.events import checkpoints, gateway, searcher, trial
from det_contracts.expconf import complete
from det_contracts.problems import Refused
from det_contracts.script_queries import AskStorage
from services.checkpoints.app import RULES
from services.checkpoints.domain import State
from services.checkpoints.script_answers import storage_refusal
from services.kit.overlay import view_of
from services.kit.quotas import limits
from services.kit.quotas.sizes import format_bytes
from services.kit.testing import Fold

CONFIG = complete(
    {
        "entrypoint": "true",
        "searcher": {"name": "single", "metric": "loss", "max_length": 1},
        "hyperparameters": {},
        "checkpoint_storage": {"type": "shared_fs", "host_path": "/tmp"},
    },
    seed=1,
    name="x",
)


class Stored:
    """Ann's experiment 1 in workspace 2, Ben's experiment 2 in workspace 1, a trial of each."""

    def __init__(self):
        self.fold = Fold(RULES)
        self.fold.apply(
            gateway.UserSet(user_id=3, username="ann", reason="t"),
            gateway.UserSet(user_id=4, username="ben", reason="t"),
            gateway.WorkspaceSet(workspace_id=2, name="nlp", owner="admin", reason="t"),
            gateway.ProjectSet(project_id=2, workspace_id=2, name="p", owner="admin", reason="t"),
        )
        for id, user, project in ((1, "ann", 2), (2, "ben", 1)):
            self.fold.apply(
                searcher.ExperimentCreated(
                    experiment_id=id,
                    user=user,
                    project_id=project,
                    config=CONFIG,
                    original_config="",
                    reason="t",
                ),
                searcher.TrialCreated(
                    trial_id=id,
                    experiment_id=id,
                    request_id="r",
                    task_id=f"{id}.r",
                    seed=1,
                    hparams={},
                    reason="t",
                ),
            )

    @property
    def state(self):
        return self.fold.state

    def quota(self, holder, storage_bytes):
        self.fold.apply(gateway.QuotaSet(holder=holder, storage_bytes=storage_bytes, reason="t"))

    def store(self, uuid, size, trial_id=1):
        self.fold.apply(
            trial.CheckpointStored(
                trial_id=trial_id,
                experiment_id=trial_id,
                run=1,
                task_id="t",
                allocation_id="a",
                uuid=uuid,
                resources={"w": size, "d/": 0},
                metadata={},
                steps_completed=1,
            )
        )

    def delete(self, *uuids, deleted=True):
        task = {"task_id": "gc", "experiment_id": 1, "uuids": uuids, "reason": "t"}
        self.fold.apply(
            checkpoints.DeletionRequested(**task), checkpoints.DeletionFinished(deleted=deleted, **task)
        )

    def used(self):
        return limits.usage_of(self.state, self.state.storage_usage)

    def refusal(self, size=0, trial_id=1):
        return storage_refusal(self.state, trial_id, AskStorage(size))


@pytest.fixture
def stored():
    return Stored()


def test_without_a_quota_nothing_is_refused(stored):
    stored.store("a", 10**15)
    assert stored.refusal(10**15) is None


def test_whose_quota_is_used_up_stores_nothing_more(stored):
    stored.quota("user-3", 1000)
    stored.store("a", 600)
    assert stored.refusal() is None
    assert stored.refusal(400) is None
    assert stored.refusal(401).startswith(
        "user 'ann' stores 600 B of the 1 kB that its quota allows, and this checkpoint would add 401 B:"
    )
    stored.store("b", 400)
    assert stored.refusal().startswith("user 'ann' stores 1 kB of the 1 kB that its quota allows: delete")
    assert stored.refusal(trial_id=2) is None


def test_what_is_stored_beyond_a_quota_is_registered_and_counts(stored):
    """The bytes are there, whatever the registry would say."""
    stored.quota("workspace-2", 1)
    stored.store("a", 50)
    assert stored.used() == {"workspace-2": 50}
    assert "workspace 'nlp' stores 50 B of the 1 B" in stored.refusal()


def test_bytes_count_until_they_are_deleted(stored):
    stored.quota("user-3", 1000)
    stored.store("a", 600)
    stored.store("b", 400)
    stored.delete("a", deleted=False)
    assert stored.used() == {"user-3": 1000}
    stored.delete("a")
    assert stored.used() == {"user-3": 400}
    stored.fold.apply(checkpoints.FilesListed("b", {"d/": 0}, "t"))
    assert stored.used() == {"user-3": 0}


def test_an_experiment_that_is_deleted_counts_no_more(stored):
    stored.quota("user-3", 1000)
    stored.store("a", 600)
    stored.fold.apply(
        searcher.TrialsDeleted(1, (1,), ("1.r",), "t"), searcher.ExperimentDeleted(1, "DELETED", "t")
    )
    assert stored.used() == {"user-3": 0}
    assert not stored.state.storage_usage.by_owner


def test_bytes_move_with_their_experiment_and_with_its_project(stored):
    stored.quota("workspace-1", 10)
    stored.quota("workspace-2", 10)
    stored.store("a", 6)
    stored.fold.apply(gateway.ExperimentMoved(1, 1, "t"))
    assert stored.used() == {"workspace-1": 6, "workspace-2": 0}
    stored.fold.apply(
        gateway.ExperimentMoved(1, 2, "t"),
        gateway.ProjectSet(project_id=2, workspace_id=1, name="p", owner="admin", reason="t"),
    )
    assert stored.used() == {"workspace-1": 6, "workspace-2": 0}


def test_an_unknown_trial_gets_a_reason(stored):
    with pytest.raises(Refused, match="trial '9' not found"):
        stored.refusal(trial_id=9)


def test_a_rebuild_counts_the_same_and_a_view_counts_by_itself(stored):
    stored.quota("user-3", 1000)
    stored.store("a", 600)
    stored.store("b", 4, trial_id=2)
    state = stored.state
    names = ("experiments", "trials", "checkpoints", "homes", "quotas", "people", "people_names", "weights")
    again = State(**{name: dict(getattr(state, name)) for name in names})
    assert (again.storage_usage.by_owner, again.storage_usage.by_place) == (
        state.storage_usage.by_owner,
        state.storage_usage.by_place,
    )
    view = view_of(state)
    view.storage_usage.add(1, limits.account_of(view, 1), -600)
    assert (limits.usage_of(view, view.storage_usage), stored.used()) == ({"user-3": 0}, {"user-3": 600})


@pytest.mark.parametrize(
    ("size", "words"), [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (999_600, "1 MB"), (5 * 10**17, "500 PB")]
)
def test_sizes_are_formatted_with_units(size, words):
    assert format_bytes(size) == words
