"""The first template of an environment has what its scripts load."""

import pytest

from worker.warm.inside.first_imports import LOADED_LATER

pytestmark = pytest.mark.live
SCRIPT = f"""
import importlib, sys
import determined as det
for name in {LOADED_LATER["determined"]}:
    importlib.import_module(name)
before = set(sys.modules)
with det.core.init() as core:
    for op in core.searcher.operations():
        core.train.report_training_metrics(1, {{"loss": 1.0}})
        core.train.report_validation_metrics(1, {{"loss": 1.0}})
        op.report_completed(1.0)
print("later:", *sorted(set(sys.modules) - before))
"""


def test_a_trial_that_trains_loads_nothing_after_what_its_first_template_loads(cluster):
    """Otherwise a second template takes its place as soon as a run has reported that."""
    id = cluster.submit(SCRIPT, environment={"warm": False})
    assert cluster.wait_for_end(id)["state"] == "STATE_COMPLETED"
    (line,) = [line for line in cluster.logs(cluster.first_trial(id)) if "later:" in line]
    assert line.endswith("later:")
