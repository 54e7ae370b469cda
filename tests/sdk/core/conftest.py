import sys
import tempfile
import types

import pytest

import determined._info
from tests.sdk.core.cluster_files import write_cluster_files


@pytest.fixture
def fresh_info(monkeypatch, tmp_path):
    """Each test reads the description of its own allocation; off cluster until files are written."""
    monkeypatch.setenv("DET_INFO_DIR", str(tmp_path / "info"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(determined._info, "_info", determined._info._UNREAD)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / "info"


@pytest.fixture
def on_cluster(fresh_info, monkeypatch, tmp_path):
    """Call it with a transport and overrides of cluster.json: from then on this is a trial's process."""

    def become(transport, **cluster):
        write_cluster_files(fresh_info, storage=tmp_path / "storage", **cluster)
        bus = types.ModuleType("determined.transport.bus")
        bus.connect = lambda info: transport
        monkeypatch.setitem(sys.modules, bus.__name__, bus)
        monkeypatch.setattr(determined._info, "_info", determined._info._UNREAD)

    return become
