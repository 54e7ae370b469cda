import pytest

from determined.storage import S3StorageManager, s3_transfer, validate_manager
from tests.sdk.storage.conftest import BUCKET, KEY, SECRET


@pytest.mark.live
def test_wrong_keys_and_missing_buckets_are_told(s3_url):
    for storage in (
        S3StorageManager(BUCKET, KEY, "wrong", s3_url),
        S3StorageManager("absent", KEY, SECRET, s3_url),
    ):
        with pytest.raises(OSError, match=r"storage s3://.* at http.* refuses: .*check the bucket"):
            validate_manager(storage)


def test_an_endpoint_must_be_a_plain_url(tmp_path):
    for url in ("127.0.0.1:9000", "ftp://x", "http://x/path"):
        with pytest.raises(ValueError, match="endpoint_url"):
            S3StorageManager("bucket", endpoint_url=url).list_resources("one")


class Flaky:
    """A store whose connections close early; `after` ranges are whole again."""

    def __init__(self, content, after):
        self.content, self.after, self.calls = content, after, 0

    def get_object(self, bucket, key, offset, length):
        self.calls += 1
        whole = self.content[offset : offset + length]
        return Response(whole if self.calls > self.after else whole[:-1])


class Response:
    def __init__(self, content):
        self.content = content

    def stream(self, size):
        for start in range(0, len(self.content), size):
            yield self.content[start : start + size]

    def close(self):
        pass

    release_conn = close


def test_a_cut_off_range_is_fetched_again(tmp_path):
    store = Flaky(b"0123456789", after=2)
    s3_transfer.download(store, "b", "id/", tmp_path, {"f": 10})
    assert (tmp_path / "f").read_bytes() == b"0123456789"


def test_a_store_that_keeps_cutting_off_never_leaves_a_short_file(tmp_path):
    with pytest.raises(s3_transfer.ShortRead, match="9 of 10 bytes"):
        s3_transfer.download(Flaky(b"0123456789", after=99), "b", "id/", tmp_path, {"f": 10, "empty": 0})
    assert list(tmp_path.iterdir()) == []


def test_parts_stay_below_the_store_limit():
    mib = 1 << 20
    assert s3_transfer._part_size(1) == 16 * mib
    huge = 1 << 40
    size = s3_transfer._part_size(huge)
    assert size % mib == 0
    assert huge / size <= 9_000
