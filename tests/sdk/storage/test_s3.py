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


def test_parts_stay_below_the_store_limit():
    mib = 1 << 20
    assert s3_transfer._part_size(1) == 16 * mib
    huge = 1 << 40
    size = s3_transfer._part_size(huge)
    assert size % mib == 0
    assert huge / size <= 9_000
