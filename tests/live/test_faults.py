"""Bad input and faults: a clear word for the person concerned, and the cluster goes on."""

import os
import shutil
import subprocess

import pytest

from det_contracts import subjects
from tests.fixtures.local_cluster import wait_for
from tests.fixtures.reading import read_streams

pytestmark = pytest.mark.timeout(900)
PLAN = {"slots": 2}
"""Own, for what scripts write here into the log is read by all who use the cluster."""

CONFIG = """
name: faults
entrypoint: python3 train.py
searcher: {name: single, metric: loss, max_length: 3}
max_restarts: 0
"""
TRAIN = """
import determined as det
with det.core.init() as core:
    for op in core.searcher.operations():
"""


@pytest.fixture
def cluster(module_cluster):
    return module_cluster


@pytest.fixture
def run(cluster, tmp_path):
    """A function that runs a script to its end; returns experiment, trial and log lines."""

    def submit(script, config=CONFIG):
        (tmp_path / "train.py").write_text(script)
        (tmp_path / "config.yaml").write_text(config)
        id = cluster.create("config.yaml", tmp_path)
        experiment = cluster.wait_for_end(id)
        (trial,) = cluster.trials(id)
        return experiment, trial, cluster.logs(trial["id"])

    return submit


def refused(cluster, folder, config):
    """What `det e create` says of a configuration that is refused."""
    (folder / "train.py").write_text("pass")
    (folder / "config.yaml").write_text(config)
    done = cluster.det("e", "create", "config.yaml", ".", cwd=folder, check=False)
    assert done.returncode == 1
    return done.stderr


def test_metrics_that_are_no_numbers(cluster, run):
    script = TRAIN + (
        "        core.train.report_training_metrics(1, {'loss': float('nan'), 'top': float('inf')})\n"
        "        core.train.report_validation_metrics(1, {'loss': float('nan')})\n"
        "        op.report_completed(float('nan'))\n"
    )
    experiment, trial, _ = run(script)
    assert experiment["state"] == "STATE_COMPLETED"
    (page,) = cluster.stream("trials/metrics/training_metrics", trialIds=trial["id"])
    assert page["metrics"][0]["metrics"]["avgMetrics"] == {"loss": "NaN", "top": "Infinity"}
    assert trial["bestValidation"] is None


def test_metric_names_with_odd_characters(cluster, run):
    names = ["a/b", "per cent %", 'quo"te', "naïve 🎉", "x" * 500, "a.b", "", " "]
    script = TRAIN + (
        f"        core.train.report_training_metrics(1, {{n: 1.0 for n in {names!r}}})\n"
        "        op.report_completed(1.0)\n"
    )
    experiment, trial, _ = run(script)
    assert experiment["state"] == "STATE_COMPLETED"
    (page,) = cluster.stream("trials/metrics/training_metrics", trialIds=trial["id"])
    assert page["metrics"][0]["metrics"]["avgMetrics"] == dict.fromkeys(names, 1.0)


def test_a_repeated_report_raises_in_the_script(cluster, run):
    script = TRAIN + (
        "        core.train.report_training_metrics(1, {'loss': 1.0})\n"
        "        core.train.report_training_metrics(1, {'loss': 2.0})\n"
        "        import time\n"
        "        for _ in range(600):\n"
        "            time.sleep(0.05)\n"
        "            core.train.set_status('waiting')\n"
    )
    experiment, _, lines = run(script)
    assert experiment["state"] == "STATE_ERROR"
    assert any("RuntimeError" in line and "conflicting key: loss" in line for line in lines)


def test_an_identical_report_is_ignored(cluster, run):
    script = TRAIN + (
        "        for _ in range(2):\n"
        "            core.train.report_validation_metrics(1, {'loss': 1.0})\n"
        "        op.report_completed(1.0)\n"
    )
    experiment, trial, _ = run(script)
    assert experiment["state"] == "STATE_COMPLETED"
    (page,) = cluster.stream("trials/metrics/validation_metrics", trialIds=trial["id"])
    assert len(page["metrics"]) == 1


NONSENSE = r"""
import itertools, json, sys
import determined as det
from det_contracts import codec, subjects
from det_contracts.events import trial
from det_contracts.reports import ReportBatch, Series, report_id

DEEP = b"[" * 5000 + b"]" * 5000
LARGE = (2**31, 2**63, 10**300, -1, -(2**70))
TEXTS = ("", "\0", "a\0b", "x" * 20_000, "../../etc", "a b.*.>", "\U0001f389" * 3000, "' or 1=1 --")
numbers = itertools.count()
info = det.get_cluster_info()
mine, run, task, allocation = info.trial.trial_id, info.trial._trial_run_id, info.task_id, info.allocation_id
experiment = info.trial.experiment_id


def events():
    for n in LARGE:
        for other in (run, n):
            yield trial.OperationCompleted(trial_id=mine, run=other, seq=n, length=n, metric=n)
            yield trial.Progressed(mine, other, float(n))
            yield trial.PreemptionAcknowledged(mine, n)
            yield trial.Heartbeat(mine, n)
            for size in LARGE:
                yield stored(f"{n}-{size}", {"a": size}, n, run=other)
    for text in TEXTS:
        yield trial.ExitedEarly(mine, run + 1, text)
        yield trial.StatusSet(mine, run, text)
        yield stored(text, {"a": 1}, 1)
        yield stored("u" + text, {text: 1}, 1, {text: text})
        yield stored("v" + text, {"a": 1}, 1, task_id=text, allocation_id=text, experiment_id=99)
        yield trial.OperationCompleted(trial_id=mine, run=run + 1, seq=1, length=1, metric=text)


def stored(uuid, resources, steps, metadata=None, run=run, **of):
    of = {"task_id": task, "allocation_id": allocation, "experiment_id": experiment} | of
    metadata = {"steps_completed": steps} if metadata is None else metadata
    return trial.CheckpointStored(trial_id=mine, run=run, uuid=uuid, resources=resources,
                                  metadata=metadata, steps_completed=steps, **of)


def batches():
    of = {"trial_id": mine, "experiment_id": experiment, "run": run, "number": 0, "searcher_metric": "loss",
          "smaller_is_better": True}
    for n in LARGE:
        yield of | {"series": [series("training", [n], n)]}
        yield of | {"run": n, "series": [series("training", [1], n)]}
        yield of | {"experiment_id": n, "series": [series("training", [1], n)]}
        yield of | {"number": n, "series": [series("validation", [1], 1.0)]}
        yield of | {"series": [series("times", [1], 1.0, at=float(n))]}
    for text in TEXTS:
        yield of | {"series": [series(text, [1], text)], "sender": text}
        yield of | {"series": [series("named", [len(text)], text, name=text)], "searcher_metric": text}
    yield of | {"series": [series("uneven", [1, 2], 1.0)]}
    yield of | {"series": []}
    yield of | {"series": [series("none", [], 1.0)]}


def series(group, steps, value, name="a", at=5.0):
    return {"group": group, "steps": steps, "at": [at] * len(steps), "columns": {name: [value]}}


with det.core.init() as core:
    thread = core._transport._thread
    def send(subject, body):
        thread.submit(thread.store(subject, body, f"{run}-{next(numbers)}")).result()
    for event in events():
        body = codec.encode(event, id=f"nonsense-{next(numbers)}", actor="x\0", at=1e300)
        send(subjects.witness_of_trial(mine), body)
        send(subjects.witness_of_trial(mine), body.replace(b'"run":', b'"run":' + DEEP + b',"x":'))
        send(subjects.witness_of_trial(mine), body[:-9])
    for batch in batches():
        send(subjects.reports(mine), json.dumps(batch).encode())
    deep = json.dumps(next(batches())).encode()
    send(subjects.reports(mine), deep.replace(b'"columns": {', b'"columns": {"d": [' + DEEP + b'],'))
    send(subjects.reports(mine), deep.replace(b'"columns": {', b'"columns": {"d": [' + DEEP[:5000]))
    print("all is said", flush=True)
    for op in core.searcher.operations():
        core.train.set_status("\\0" * 20_000 + "x" * 20_000)
        core.train.report_validation_metrics(op.length, {"loss": 10**300})
        op.report_completed(10**300)
"""


def test_invalid_messages_of_a_script_affect_nobody_else(cluster, run):
    before = {name: cluster.pid(name) for name in cluster.names()}
    _, _, lines = run(NONSENSE)
    assert "all is said" in lines, lines
    experiment, trial, _ = run(TRAIN + "        op.report_completed(1.0)\n")
    assert experiment["state"] == "STATE_COMPLETED"
    assert {name: cluster.pid(name) for name in cluster.names()} == before
    assert cluster.get(f"trials/{trial['id']}")["trial"]["state"] == "STATE_COMPLETED"
    assert f"experiment {experiment['id']} was created" in cluster.det("master", "logs").stdout


def test_reports_with_thousands_of_names(cluster, run):
    script = TRAIN + (
        "        for step in range(1, 31):\n"
        "            core.train.report_training_metrics(step, {f'name-{n}': n * 1.5 for n in range(3000)})\n"
        "        op.report_completed(1.0)\n"
    )
    experiment, trial, _ = run(script)
    assert experiment["state"] == "STATE_COMPLETED"
    pages = cluster.stream("trials/metrics/training_metrics", trialIds=trial["id"])
    rows = [row for page in pages for row in page["metrics"]]
    assert [(row["totalBatches"], len(row["metrics"]["avgMetrics"])) for row in rows] == [
        (n, 3000) for n in range(1, 31)
    ]


def test_a_report_that_no_message_can_hold(run):
    script = TRAIN + (
        "        core.train.report_training_metrics(1, {'text': 'x' * 9_000_000})\n"
        "        core.train.report_validation_metrics(1, {'loss': 0.5})\n"
        "        op.report_completed(0.5)\n"
    )
    _, trial, lines = run(script)
    assert trial["bestValidation"]["metrics"]["avgMetrics"] == {"loss": 0.5}
    assert any("too large to be sent" in line for line in lines)


def test_output_that_is_not_utf8(run):
    script = "import sys\nsys.stdout.buffer.write(b'caf\\xe9 \\x00 \\xff\\nnext\\n')\n"
    experiment, _, lines = run(script)
    assert experiment["state"] == "STATE_COMPLETED"
    assert any(line.startswith("caf") for line in lines)
    assert "next" in lines


@pytest.mark.full
def test_100_mb_without_a_newline(run):
    script = "import sys\nfor _ in range(100):\n    sys.stdout.write('x' * 1_000_000)\nprint('\\nend')\n"
    experiment, _, lines = run(script)
    assert experiment["state"] == "STATE_COMPLETED"
    assert lines[-1] == "end"
    # The first line of a log says where its trial runs.
    pieces = lines[1:-1]
    assert sum(line.count("x") for line in pieces) == 100_000_000
    assert all(line.endswith("…") for line in pieces[:-1])
    assert all(line.startswith("…") for line in pieces[1:])


def test_a_refused_checkpoint_store_is_reported_at_submission(cluster, tmp_path):
    blocked = tmp_path / "a-file"
    blocked.write_text("not a directory")
    storage = f"checkpoint_storage: {{type: shared_fs, host_path: {blocked}}}\n"
    message = refused(cluster, tmp_path, CONFIG + storage)
    assert str(blocked) in message
    assert str(os.getuid()) in message


@pytest.mark.parametrize(
    ("config", "word"),
    [
        ("a: [", "line"),
        ("name: a\nname: b\n", "duplicate"),
        (CONFIG.replace("single", "psychic"), "is not an object where object"),
        (CONFIG.replace("max_restarts: 0", "max_restart: 0"), "max_restart"),
        (CONFIG.replace("entrypoint: python3 train.py", ""), "entrypoint"),
        (CONFIG.replace("max_length: 3", "max_length: 3, source_trial_id: 999999"), "999999"),
    ],
)
def test_configurations_that_make_no_sense(cluster, tmp_path, config, word):
    before = cluster.get("experiments")["pagination"]["total"]
    assert word in refused(cluster, tmp_path, config)
    assert cluster.get("experiments")["pagination"]["total"] == before


def test_too_large_a_context_is_refused_before_it_is_sent(cluster, tmp_path):
    with (tmp_path / "data.bin").open("wb") as file:
        file.truncate(96 * 1024 * 1024)
    assert ".detignore" in refused(cluster, tmp_path, CONFIG)


def test_a_crash_shows_its_reason(cluster, run):
    experiment, trial, lines = run("raise SystemExit('out of cheese')")
    assert experiment["state"] == "STATE_ERROR"
    assert "out of cheese" in lines
    assert "exit code 1" in trial["stateReason"]
    assert "exit code 1" in cluster.det("e", "describe", experiment["id"]).stdout


def test_a_startup_hook_that_fails_ends_the_task(cluster, tmp_path):
    (tmp_path / "train.py").write_text("print('must not run')")
    (tmp_path / "startup-hook.sh").write_text("echo preparing\nfalse\n")
    (tmp_path / "config.yaml").write_text(CONFIG)
    id = cluster.create("config.yaml", tmp_path)
    assert cluster.wait_for_end(id)["state"] == "STATE_ERROR"
    lines = cluster.logs(cluster.trials(id)[0]["id"])
    assert "preparing" in lines
    assert "must not run" not in lines


@pytest.mark.full
@pytest.mark.skipif(os.getuid() != 0, reason="needs root to mount a small disk")
def test_a_full_disk_under_the_spool(local_cluster, tmp_path):
    disk = tmp_path / "small-disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        cluster = local_cluster(settings={"STEADFAST_WORKER_HOME": str(disk)})
        model = tmp_path / "model"
        model.mkdir()
        (model / "train.py").write_text(
            "for n in range(60):\n    print(str(n) * 100_000)\nprint('done', flush=True)\n"
        )
        (model / "config.yaml").write_text(CONFIG)
        id = cluster.create("config.yaml", model)
        assert cluster.wait_for_end(id, 90)["state"] == "STATE_COMPLETED"
        again = cluster.create("config.yaml", model)
        ended = cluster.wait_for_end(again, 90)
        assert ended["state"] == "STATE_COMPLETED", ended["stateReason"]
    finally:
        cluster.down()
        subprocess.run(["umount", "-l", str(disk)], check=False)


@pytest.mark.full
@pytest.mark.expected_log(
    r"(service|worker)\.failed .*LogTruncated", reason="all who read the log before refuse what is left of it"
)
def test_a_log_that_is_lost_is_refused_and_not_made_anew(local_cluster, tmp_path):
    cluster = local_cluster()
    (tmp_path / "train.py").write_text("pass")
    (tmp_path / "config.yaml").write_text(CONFIG)
    cluster.wait_for_end(cluster.create("config.yaml", tmp_path))
    cluster.stop("broker")
    shutil.rmtree(cluster.home.path / "broker" / "jetstream")
    cluster.start("broker")
    # Also those that are started again, which make streams where there are none.
    services = ("searcher", "scheduler", "metrics", "checkpoints", "webhooks", "gateway")
    for name in services:
        wait_for(lambda name=name: refusals(cluster, name) > 1, 120, f"{name} to refuse the log twice")
    assert set(read_streams(cluster)).isdisjoint(subjects.STREAM_SUBJECTS)


def refusals(cluster, name):
    """How many processes of a service have ended because of it."""
    return sum("is gone, but position" in line for line in cluster.log(name).splitlines())
