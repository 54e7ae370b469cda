import pytest

from determined.storage import S3StorageManager, SharedFSStorageManager, build, from_string, validate_config
from determined.storage.bucket_storage import normalize_prefix
from determined.storage.build import shared_fs_path


@pytest.mark.parametrize(
    ("config", "error", "text"),
    [
        ({}, ValueError, "Missing 'type' parameter"),
        ({"type": None}, ValueError, "Missing 'type' parameter"),
        ({"type": 3}, ValueError, "must be a string"),
        ({"type": "tape"}, TypeError, "Unknown storage type: tape"),
        ({"type": "shared_fs"}, TypeError, "host_path"),
        ({"type": "shared_fs", "host_path": "/x", "bucket": "b"}, TypeError, "bucket"),
        ({"type": "shared_fs", "host_path": "relative"}, ValueError, "absolute"),
        ({"type": "s3"}, TypeError, "bucket"),
        ({"type": "s3", "bucket": ""}, ValueError, "bucket"),
        ({"type": "s3", "bucket": "b", "prefix": "a/../b"}, ValueError, "prefix must not match"),
        ({"type": "directory", "container_path": "here"}, ValueError, "absolute"),
        ({"type": "gcs"}, TypeError, "bucket"),
        ({"type": "gcs", "bucket": ""}, ValueError, "bucket"),
        ({"type": "gcs", "bucket": "b", "prefix": "a/../b"}, ValueError, "prefix must not match"),
        ({"type": "azure", "account_url": "https://a.blob.core.windows.net"}, TypeError, "container"),
        ({"type": "azure", "container": "c"}, ValueError, "either connection_string or account_url"),
    ],
)
def test_impossible_configurations(config, error, text):
    with pytest.raises(error, match=text):
        build(config)


@pytest.mark.parametrize(
    ("storage_path", "container_path", "path"),
    [
        (None, None, "/host"),
        ("sub", None, "/host/sub"),
        ("/host/sub", None, "/host/sub"),
        ("sub/../other", None, "/host/other"),
        ("sub", "/mounted", "/mounted/sub"),
        (None, "/mounted", "/mounted"),
    ],
)
def test_place_of_a_shared_directory(storage_path, container_path, path):
    assert shared_fs_path("/host", storage_path, container_path) == path


@pytest.mark.parametrize("storage_path", ["..", "../x", "/elsewhere", "/hostile", "a/../../b"])
def test_storage_path_may_not_leave_host_path(storage_path):
    with pytest.raises(ValueError, match="must be a subdirectory"):
        shared_fs_path("/host", storage_path)


def test_a_merged_configuration_builds(tmp_path):
    storage = build(
        {
            "type": "shared_fs", "host_path": str(tmp_path), "storage_path": "ckpts",
            "propagation": "rprivate", "container_path": None, "checkpoint_path": None,
            "tensorboard_path": None, "save_experiment_best": 0, "save_trial_best": 1, "save_trial_latest": 1,
        }
    )  # fmt: skip
    assert storage.pre_store_path("x") == tmp_path / "ckpts" / "x"
    nulls = {"access_key": None, "secret_key": None, "endpoint_url": None, "prefix": None}
    assert isinstance(build({"type": "s3", "bucket": "b", **nulls}), S3StorageManager)
    validate_config({"type": "directory", "container_path": str(tmp_path)})


@pytest.mark.parametrize("shortcut", ["{0}/a b", "file://{0}/a%20b"])
def test_paths_and_file_urls(tmp_path, shortcut):
    storage = from_string(shortcut.format(tmp_path))
    assert isinstance(storage, SharedFSStorageManager)
    assert storage.pre_store_path("x") == tmp_path / "a b" / "x"


def test_a_relative_path_is_taken_from_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    storage = from_string("ckpts")
    monkeypatch.chdir("/")
    assert storage.pre_store_path("x") == tmp_path / "ckpts" / "x"


@pytest.mark.parametrize(
    "shortcut",
    ["", "file://host/x", "/a?b", "/a#b", "/a;b", "ftp://x/y", "s3://", "s3://b/a/../c", "s3://b/x?y=1"],
)
def test_malformed_strings(shortcut):
    with pytest.raises(ValueError, match=r"malformed|unknown scheme|bucket|prefix"):
        from_string(shortcut)


@pytest.mark.parametrize(
    ("prefix", "normal"),
    [
        (None, ""), ("", ""), ("/", ""), ("///", ""), ("/foo/", "foo"), ("./foo/", "foo"), ("/./foo/", "foo"),
        ("/fo..o/", "fo..o"), ("a//b/", "a/b"),
    ],
)  # fmt: skip
def test_prefixes(prefix, normal):
    assert normalize_prefix(prefix) == normal


@pytest.mark.parametrize("prefix", ["..", "../x", "x/..", "x/../y", "/.."])
def test_prefixes_that_climb(prefix):
    with pytest.raises(ValueError, match="prefix must not match"):
        normalize_prefix(prefix)


@pytest.mark.parametrize("config", ["/a/path", None, 5, ["type", "s3"]])
def test_a_configuration_that_is_no_mapping_is_refused(config):
    with pytest.raises(TypeError, match="must be a dict with a 'type', not"):
        build(config)


@pytest.mark.parametrize("shortcut", [b"/a/path", None, 5])
def test_a_shortcut_that_is_no_text_is_refused(shortcut):
    with pytest.raises(TypeError, match="must be a str, a path or a URL"):
        from_string(shortcut)


def test_buckets_of_google_and_containers_of_azure():
    assert repr(from_string("gs://b/c/")) == repr(build({"type": "gcs", "bucket": "b", "prefix": "c"}))
    account = {"type": "azure", "container": "c", "account_url": "https://name.blob.core.windows.net"}
    assert repr(build(account)) == "container c at https://name.blob.core.windows.net"
