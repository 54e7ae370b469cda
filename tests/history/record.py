"""Records the log of a real cluster over a few whole experiments.

    python -m tests.history.record NAME

Writes `tests/history/NAME.jsonl.gz`. Do so at each release; old files stay as they are.
"""

import asyncio
import json
import sys
import tempfile
from pathlib import Path

from det_contracts import subjects
from services.kit.log_jetstream import JetStreamLog
from tests.fixtures.local_cluster import LocalCluster, wait_for
from tests.fixtures.reading import _with_client
from tests.history.facts import facts_of
from tests.history.recording import write

SCRIPT = """
import sys, time
import determined as det

info = det.get_cluster_info()
hparams = info.trial.hparams
with det.core.init() as core:
    if hparams["by"] == "crash":
        sys.exit(3)
    if hparams["by"] == "invalid":
        raise det.InvalidHP("not this one")
    step = 0
    if info.latest_checkpoint:
        with core.checkpoint.restore_path(info.latest_checkpoint) as path:
            step = int((path / "step").read_text())
    for op in core.searcher.operations():
        while step < op.length:
            step += 1
            time.sleep(hparams.get("pause", 0))
            core.train.report_training_metrics(steps_completed=step, metrics={"x": step * hparams["by"]})
            if step % 4 == 0:
                with core.checkpoint.store_path({"steps_completed": step}) as (path, uuid):
                    (path / "step").write_text(str(step))
            if core.preempt.should_preempt():
                sys.exit(0)
        core.train.report_validation_metrics(steps_completed=step, metrics={"x": step * hparams["by"]})
        op.report_completed(step * hparams["by"])
"""
CONFIG = """
name: {name}
entrypoint: python3 train.py
searcher: {searcher}
hyperparameters: {hparams}
max_restarts: 1
reproducibility: {{experiment_seed: 5}}
"""
ASHA = "{name: adaptive_asha, metric: x, max_length: 16, max_trials: 8, smaller_is_better: false}"
SINGLE = "{name: single, metric: x, max_length: %d}"


class Recording:
    """A cluster, and a user who does a bit of everything."""

    def __init__(self, folder):
        self.folder = folder
        self.cluster = LocalCluster(folder / "cluster", agents=2)

    def submit(self, name, searcher, hparams, *words):
        model = self.folder / name
        model.mkdir()
        (model / "train.py").write_text(SCRIPT)
        (model / "config.yaml").write_text(CONFIG.format(name=name, searcher=searcher, hparams=hparams))
        return self.cluster.create("config.yaml", model, *words)

    def live(self):
        """The things that people do, once each."""
        cluster = self.cluster
        search = self.submit("search", ASHA, "{by: {type: int, minval: 1, maxval: 9}}")
        crash = self.submit("crash", SINGLE % 4, "{by: crash}")
        invalid = self.submit("invalid", SINGLE % 4, "{by: invalid}")
        slow = self.submit("slow", SINGLE % 40, "{by: 1, pause: 0.05}")
        doomed = self.submit("doomed", SINGLE % 4000, "{by: 1, pause: 0.05}")
        for id in (search, crash, invalid):
            cluster.wait_for_end(id)
        self._wait_for_checkpoint(slow)
        cluster.api("POST", f"experiments/{slow}/pause")
        cluster.api("PATCH", f"experiments/{slow}", json={"name": "renamed", "resources": {"priority": 7}})
        cluster.kill("searcher")
        cluster.api("POST", f"experiments/{slow}/activate")
        cluster.wait_for_end(slow)
        cluster.api("POST", f"experiments/{doomed}/kill")
        cluster.wait_for_end(doomed)
        cluster.api("POST", f"experiments/{crash}/archive")
        cluster.api("DELETE", f"experiments/{doomed}")
        wait_for(lambda: doomed not in self._ids(), 60, "the deletion")
        agent = cluster.get("agents")["agents"][0]["id"]
        cluster.api("POST", f"agents/{agent}/disable", json={"drain": True})
        cluster.api("POST", f"agents/{agent}/enable", json={})

    def _wait_for_checkpoint(self, id):
        wait_for(lambda: self.cluster.get(f"experiments/{id}/checkpoints")["checkpoints"], 60, "a checkpoint")

    def _ids(self):
        return [experiment["id"] for experiment in self.cluster.get("experiments")["experiments"]]

    def streams(self):
        """Every message of all streams."""

        async def work(client):
            messages = {}
            for stream in subjects.STREAM_SUBJECTS:
                messages[stream] = []
                async with JetStreamLog(client).read(stream, after=0) as feed:
                    while True:
                        batch = await feed.batch()
                        messages[stream] += batch.messages
                        if batch.caught_up:
                            break
            return messages

        return asyncio.run(_with_client(self.cluster, work))


def main():
    """Record, and keep what is true at the end."""
    path = Path(__file__).parent / f"{sys.argv[1]}.jsonl.gz"
    if path.exists():
        sys.exit(f"{path} exists; a recorded history is never written again")
    with tempfile.TemporaryDirectory() as folder:
        recording = Recording(Path(folder))
        recording.cluster.up()
        try:
            recording.live()
            streams = recording.streams()
        finally:
            recording.cluster.down()
    facts = facts_of(streams)
    write(path, streams, facts)
    print(json.dumps(facts, indent=2))


if __name__ == "__main__":
    main()
