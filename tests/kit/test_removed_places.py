"""What is filed in a project or workspace that is removed while the command for it is on its way."""

import pytest

from det_contracts.commands import CreateExperiment, MoveExperiment, SetModel, SubmitTask
from det_contracts.events.gateway import ProjectRemoved, ProjectSet, WorkspaceRemoved, WorkspaceSet
from det_contracts.events.searcher import ExperimentCreated
from det_contracts.expconf import complete
from det_contracts.problems import Refused
from services.checkpoints.app import RULES as CHECKPOINTS
from services.gateway.app import RULES as GATEWAY
from services.kit.testing import Fold
from services.scheduler.app import RULES as SCHEDULER
from services.searcher.app import RULES as SEARCHER

PLACES = (
    WorkspaceSet(workspace_id=2, name="nlp", owner="admin", reason="test"),
    ProjectSet(project_id=2, workspace_id=2, name="p", owner="admin", reason="test"),
)
REMOVED = ProjectRemoved(2, "test"), WorkspaceRemoved(2, "test")
CONFIG = complete(
    {
        "name": "n",
        "entrypoint": "python3 train.py",
        "searcher": {"name": "single", "metric": "loss", "max_length": 2},
        "checkpoint_storage": {"type": "shared_fs", "host_path": "/tmp"},
    },
    seed=1,
    name="n",
)
EXPERIMENT = CreateExperiment(user="admin", config=CONFIG, original_config="", project_id=2)
TASK = SubmitTask(
    task_id="t", kind="COMMAND", user="admin", name="", config={}, slots=1, pool="default", workspace_id=2
)
FILED = [
    (SEARCHER, EXPERIMENT, "project"),
    (SCHEDULER, TASK, "workspace"),
    (CHECKPOINTS, SetModel(name="m", workspace_id=2, user="admin"), "workspace"),
]


@pytest.mark.parametrize(("rules", "command", "kind"), FILED)
def test_nothing_is_filed_in_what_is_gone(rules, command, kind):
    fold = Fold(rules).apply(*PLACES)
    assert fold.rule(command).events
    fold = Fold(rules).apply(*PLACES, *REMOVED)
    with pytest.raises(Refused, match=kind) as refusal:
        fold.rule(command)
    assert refusal.value.problem.code == "not_found"


def test_an_experiment_whose_project_went_at_the_same_time_can_be_moved():
    created = ExperimentCreated(
        experiment_id=1, user="ann", config=CONFIG, original_config="", project_id=2, reason="test"
    )
    fold = Fold(GATEWAY).apply(*PLACES, *REMOVED, created)
    fold.rule(MoveExperiment(experiment_id=1, project_id=1, user="admin"))
    assert fold.state.project_of[1] == 1


def test_a_model_whose_workspace_went_at_the_same_time_can_be_moved():
    fold = Fold(CHECKPOINTS).apply(*PLACES)
    fold.rule(SetModel(name="m", workspace_id=2, user="admin"))
    fold.apply(*REMOVED).rule(SetModel(model_id=1, workspace_id=1, user="admin"))
    assert fold.state.models[1].definition.workspace_id == 1
