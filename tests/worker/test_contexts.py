"""What a worker keeps of experiments' code stays bounded, and is there for whoever runs."""

import io

from services.kit.blobs import DirectoryBlobs
from worker import contexts as module
from worker.contexts import ContextCache


def key(number):
    return f"{number:064x}"


def test_only_those_that_were_used_last_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_ARCHIVES", 5)
    now = [1_000_000.0]
    blobs = DirectoryBlobs(tmp_path / "blobs")
    cache = ContextCache(tmp_path / "contexts", blobs, clock=lambda: now[0])
    for number in range(30):
        blobs.put(key(number), io.BytesIO(b"%d" % number))
    half = tmp_path / "contexts" / "half.tar.gz.7-7"
    half.write_bytes(b"half")
    module.os.utime(half, (1.0, 1.0))
    for number in range(30):
        now[0] += 3600
        assert cache.get(key(number)).read_bytes() == b"%d" % number
        # Used by every run, so it stays.
        assert cache.get(key(0)).read_bytes() == b"0"
        assert len(list((tmp_path / "contexts").iterdir())) <= 5 + 2
    assert not half.exists()
    there = {path.name.partition(".")[0] for path in (tmp_path / "contexts").iterdir()}
    assert {key(0), key(29)} <= there
    assert key(1) not in there
    assert cache.get(key(1)).read_bytes() == b"1", "it is fetched again"


def test_what_may_be_in_use_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_ARCHIVES", 1)
    blobs = DirectoryBlobs(tmp_path / "blobs")
    cache = ContextCache(tmp_path / "contexts", blobs, clock=lambda: 1_000_000.0)
    for number in range(4):
        blobs.put(key(number), io.BytesIO(b"x"))
        cache.get(key(number))
    assert len(list((tmp_path / "contexts").iterdir())) == 4
