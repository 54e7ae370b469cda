import shutil

import pytest

from determined.core import CheckpointContext, DummyDistributedContext
from determined.storage import S3StorageManager, transfer, validate_manager
from tests.sdk.core.fake_transport import FakeTransport
from tests.sdk.storage.conftest import BUCKET, KEY, SECRET


@pytest.mark.live
def test_wrong_keys_and_missing_buckets_are_reported(s3_url):
    for storage in (
        S3StorageManager(BUCKET, KEY, "wrong", s3_url),
        S3StorageManager("absent", KEY, SECRET, s3_url),
    ):
        with pytest.raises(OSError, match=r"storage s3://.* at http.* refuses: .*check the bucket"):
            validate_manager(storage)


def _store(checkpoint, way, model):
    if way == "upload":
        checkpoint.upload(model, {"steps_completed": 1})
        return
    with checkpoint.store_path({"steps_completed": 1}) as (path, _):
        shutil.copytree(model, path, dirs_exist_ok=True)


@pytest.mark.live
@pytest.mark.parametrize("way", ["upload", "store_path"])
def test_a_bucket_that_fails_half_way_keeps_nothing(s3_url, s3_root, tmp_path, monkeypatch, way):
    storage = S3StorageManager(BUCKET, KEY, SECRET, s3_url, f"half/{way}")
    transport, stored, put = FakeTransport([10]), [], storage._client.put_object

    def fails_later(bucket, key, *args, **kwargs):
        if len(stored) == 3:
            raise OSError(f"no room for {key}")
        put(bucket, key, *args, **kwargs)
        stored.append(key)

    monkeypatch.setattr(storage._client, "put_object", fails_later)
    monkeypatch.setattr(transfer, "PARALLEL_OBJECTS", 1)
    for name in "abcdef":
        (tmp_path / name).write_text(name)
    checkpoint = CheckpointContext(DummyDistributedContext(), storage, transport)
    with pytest.raises(OSError, match="no room for half"):
        _store(checkpoint, way, tmp_path)
    assert len(stored) == 3
    assert [path for path in (s3_root / BUCKET / "half" / way).rglob("*") if path.is_file()] == []
    assert transport.log == []


def test_an_endpoint_must_be_a_plain_url(tmp_path):
    for url in ("127.0.0.1:9000", "ftp://x", "http://x/path"):
        with pytest.raises(ValueError, match="endpoint_url"):
            S3StorageManager("bucket", endpoint_url=url).list_resources("one")


def test_parts_stay_below_the_store_limit():
    mib = 1 << 20
    assert transfer._part_size(1) == 16 * mib
    huge = 1 << 40
    size = transfer._part_size(huge)
    assert size % mib == 0
    assert huge / size <= 9_000
