"""A day with the published client of Determined 0.25.0, unchanged, on our cluster.

Each row is a command line and what it has to print. Every noun in depth, and scripts with the published SDK,
are in `tests/full/test_published*.py`.
"""

import functools

import pytest

from tests.fixtures.local_cluster import wait_for
from tests.fixtures.published import walk

pytestmark = pytest.mark.timeout(900)
ID = r"[0-9a-f]{8}-[0-9a-f-]{27}"
SCRIPT = """
import determined as det

with det.core.init() as core:
    for op in core.searcher.operations():
        core.train.report_training_metrics(steps_completed=1, metrics={"x": 1})
        with core.checkpoint.store_path({"steps_completed": 1}) as (path, uuid):
            (path / "state").write_text("kept")
        core.train.report_validation_metrics(steps_completed=1, metrics={"x": 2})
        print("said by the script")
        op.report_completed(2)
"""
FILES = {
    "run.py": SCRIPT,
    "t.yaml": "resources: {slots: 1}\ndescription: of a template\n",
    "short.yaml": "name: short\nentrypoint: python3 run.py\nmax_restarts: 0\n"
    "searcher: {name: single, metric: x, max_length: {batches: 1}}\n",
    "long.yaml": "name: long\nentrypoint: sleep 600\nmax_restarts: 0\n"
    "searcher: {name: single, metric: x, max_length: {batches: 1}}\n",
}
CREATION = [
    ("user whoami", r"You are logged in as user 'determined'"),
    ("version", r"master_id"),
    (
        "e create short.yaml . -f",
        r"Created experiment (?P<id>\d+)(.*\n)+.*said by the script(.*\n)+.*stream ended",
    ),
    ("e wait {id} --polling-interval 1", r""),
]
EXPERIMENT = [
    ("e list --all", r" {id} \| determined \| short .*COMPLETED"),
    ("e describe {id}", r"short"),
    ("e lt {id}", r"\n +(?P<trial>\d+) \| COMPLETED"),
    ("e lc {id} --csv", rf"COMPLETED[^\n]*?(?P<uuid>{ID})"),
    ("e logs {id}", r"said by the script"),
    ("e config {id}", r"entrypoint: python3 run.py"),
    ("e label add {id} nice", r"Added label 'nice' to experiment {id}"),
    ("e set name {id} Fine", r"Set name of experiment {id} to 'Fine'"),
    ("e set description {id} words", r"Set description of experiment {id} to 'words'"),
    ("e describe {id} --json", r'"labels": \[\s*"nice"\s*\]'),
    ("e archive {id}", r"Archived experiment {id}"),
    ("e unarchive {id}", r"Unarchived experiment {id}"),
    ("t describe {trial} --metrics", r"COMPLETED(.*\n)*.*\"x\": 2"),
    ("t logs {trial} --tail 2", r"Trial log stream ended"),
    ("checkpoint describe {uuid}", r"Steps Completed(.*\n)+.*{uuid}"),
    ("model create {name}", r"\d+ \| {name} "),
    ("model register-version {name} {uuid}", r"{uuid}"),
    ("model list-versions {name}", r"Version # \| +Trial ID(.*\n)+ +1 \| +{trial} \| .*{uuid}"),
]
RUNNING = [
    ("e create long.yaml . --paused", r"Created experiment (?P<long>\d+)"),
    ("e activate {long}", r"Activated experiment {long}"),
    ("e pause {long}", r"Paused experiment {long}"),
    ("e activate {long}", r"Activated experiment {long}"),
    ("job list", r"TYPE_EXPERIMENT \| long "),
    ("e set weight {long} 2", r""),
    ("e kill {long}", r"Killed experiment {long}"),
]
START = [
    ("template create {name} t.yaml", r"Created template {name}"),
    ("template describe {name}", r"description: of a template\nresources:\n  slots: 1\n"),
    ("cmd run -d --template {name} sleep 600", rf"^(?P<command>{ID})\n$"),
]
COMMANDS = [
    ("cmd list", r"{command} \| determined \| of a template +\| RUNNING"),
    ("cmd config {command}", r"entrypoint:\n- sleep\n- '600'\n"),
    ("task list", r"{command} \| {command}\.1"),
    ("cmd kill {command}", r"Killed command {command}"),
    ("template remove {name}", r"Removed template {name}"),
    (
        "cmd run echo hello there",
        r"hello there\n(.*\n)*.*resources exited successfully with a zero exit code",
    ),
]
ADMINISTRATION = [
    ("agent list", r"Agent ID +\| Version .*\n.*\n (?P<agent>\S+) .*\| default +\| True +\| False"),
    ("slot list", r"{agent} +\| default +\| +0 \| True +\| False +\| FREE +\| FREE +\| cpu"),
    ("slot disable {agent} 0", r""),
    ("slot list", r"{agent} +\| default +\| +0 \| False"),
    ("slot enable {agent} 0", r""),
    ("agent disable {agent}", r""),
    ("agent list", r"{agent} .*\| False +\| False"),
    ("agent enable {agent}", r""),
    ("user create {name}", r""),
    ("user list", r"{name} +\| False +\| True"),
    ("user deactivate {name}", r""),
    ("workspace create {name}", r"\d+ \| {name} "),
    ("project create {name} p --description words", r"\d+ \| p +\| words"),
    ("e move {id} {name} p", r"Moved experiment {id} to project \"p\""),
    ("project list-experiments {name} p --all", r" {id} +\| determined +\| Fine "),
]
METRICS = """
from determined.experimental import client
trial = client.get_trial({trial})
rows = list(client.stream_trials_validation_metrics([trial.id]))
print([(row.total_batches, float(row.metrics["x"])) for row in rows])
print(client.get_experiment({id}).top_checkpoint().uuid)
"""


def test_a_day_with_it(cluster, their_det, tmp_path):
    for file, text in FILES.items():
        (tmp_path / file).write_text(text)
    texts = {"name": "published"}
    ask = functools.partial(walk, functools.partial(their_det, cluster), texts=texts)
    ask(CREATION)
    cluster.wait_for_end(int(texts["id"]))
    ask(EXPERIMENT)
    output = their_det(cluster, python=METRICS.format_map(texts))
    assert output == f"[(1, 2.0)]\n{texts['uuid']}\n", output
    ask(RUNNING)
    over = lambda: cluster.experiment(int(texts["long"]))["state"] == "STATE_CANCELED"  # noqa: E731
    wait_for(over, 60, "the experiment to be killed")
    ask(START)
    runs = lambda: cluster.get(f"commands/{texts['command']}")["command"]["state"] == "STATE_RUNNING"  # noqa: E731
    wait_for(runs, 60, "the command to run")
    ask(COMMANDS)
    policy = [f"--save-{what}=0" for what in ("experiment-best", "trial-best", "trial-latest")]
    output = their_det(cluster, "e", "set", "gc-policy", texts["id"], *policy, typed="y\n")
    assert "This policy will delete" in output
    # All slots are free again.
    cluster.end_all()
    walk(functools.partial(their_det, cluster, user="admin"), ADMINISTRATION, texts)
    assert "Forbidden(" in their_det(cluster, "agent", "disable", texts["agent"], status=1)
    their_det(cluster, "e", "describe", "999999", status=1)
