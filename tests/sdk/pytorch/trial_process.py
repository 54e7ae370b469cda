"""A trial's process on a cluster in memory: what its worker wrote, and a transport that keeps everything."""

import json
import logging
import sys
import tempfile
import types

import determined._info
from tests.sdk.core.cluster_files import TRIAL, write_cluster_files
from tests.sdk.core.fake_transport import FakeTransport


class TrialProcess:
    """Makes this process that of a trial; `transport` then holds what it reported."""

    def __init__(self, monkeypatch, folder):
        self._monkeypatch = monkeypatch
        self.folder = folder
        self.transport = None

    def become(self, *, lengths=(4,), preempt_after=None, config=None, hparams=None, steps=0, **cluster):
        """`config` overrides sections of the experiment's, `cluster` fields of cluster.json."""
        info = self.folder / "info"
        write_cluster_files(info, storage=self.folder / "storage", **cluster)
        storage = json.loads((info / "trial.json").read_text())["config"]["checkpoint_storage"]
        searcher = {"name": "single", "metric": "validation_loss", "max_length": {"batches": max(lengths)}}
        whole = {"searcher": searcher, "checkpoint_storage": storage} | (config or {})
        trial = {
            "config": whole,
            "hparams": hparams or {"global_batch_size": 2},
            "steps_completed": steps,
            "debug": bool(whole.get("debug")),
        }
        (info / "trial.json").write_text(json.dumps(TRIAL | trial))
        before = self.transport
        self.transport = FakeTransport(lengths, preempt_after)
        if before is not None:
            self.transport.metadata = before.metadata
        bus = types.ModuleType("determined.transport.bus")
        bus.connect = lambda _: self.transport
        self._monkeypatch.setitem(sys.modules, bus.__name__, bus)
        self._monkeypatch.setenv("DET_INFO_DIR", str(info))
        self._monkeypatch.setattr(tempfile, "tempdir", str(self.folder))
        self._monkeypatch.setattr(determined._info, "_info", determined._info._UNREAD)
        # As a process of its own the harness sets up logging; here that is pytest's.
        self._monkeypatch.setattr(logging, "basicConfig", lambda **_: None)
        return self.transport

    def reported(self, group):
        """(steps, metrics) of a group."""
        return [entry[1:] for entry in self.transport.log if entry[0] == group]

    def checkpoints(self):
        """(uuid, steps) in order."""
        stored = [entry[1] for entry in self.transport.log if entry[0] == "checkpoint"]
        return [(checkpoint.uuid, checkpoint.metadata["steps_completed"]) for checkpoint in stored]
