"""Google Cloud Storage and Azure, beyond what `test_storage.py` promises of every storage."""

import pickle
import ssl
import threading

import pytest

from determined.core import CheckpointContext, DummyDistributedContext
from determined.errors import CheckpointNotFound
from determined.storage import (
    AzureStorageManager,
    GCSStorageManager,
    bucket_storage,
    download,
    object_store,
    transfer,
)
from services.local.certificates import ensure_certificates
from tests.fixtures.azure_server import ACCOUNT, ACCOUNT_KEY, CONTAINER, SAS, AzureHandler
from tests.fixtures.cloud_server import CloudServer, running
from tests.fixtures.gcs_server import GCS_BUCKET
from tests.sdk.core.fake_transport import FakeTransport

MIB = 1 << 20
LARGE = bytes(range(256)) * (11 << 12) + b"the end"


@pytest.fixture(params=["gcs", "azure"])
def cloud(request, monkeypatch):
    """A stand-in, and a storage in it."""
    monkeypatch.setattr(transfer, "PART_SIZE_BYTES", 5 * MIB)
    monkeypatch.setattr(download, "_PAUSES_S", (0.0, 0.0))
    server = request.getfixturevalue(request.param)
    server.objects.clear()
    server.parts.clear()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
    yield server, storage_of(server, request.param)
    server.fault = None
    server.requests.clear()


def storage_of(server, kind, credential=ACCOUNT_KEY):
    if kind == "gcs":
        return GCSStorageManager(GCS_BUCKET, "some/prefix")
    return AzureStorageManager(CONTAINER, account_url=server.url, credential=credential)


@pytest.fixture
def source(tmp_path):
    root = tmp_path / "source"
    root.mkdir()
    (root / "large").write_bytes(LARGE)
    (root / "small").write_bytes(b"12345")
    return root


def test_large_files_go_in_parts_and_come_in_ranges(cloud, source, tmp_path):
    server, storage = cloud
    storage.upload(source, "one")
    assert not any(server.parts.values())
    stored = next(content for key, content in server.objects.items() if key.endswith("one/large"))
    assert stored == LARGE
    received = []
    storage.download("one", tmp_path / "back", progress=lambda *done: received.append(done))
    assert (tmp_path / "back" / "large").read_bytes() == LARGE
    assert received[-1] == (len(LARGE) + 5,) * 2
    server.requests.clear()
    storage.download("one", tmp_path / "back")
    assert not [path for method, path in server.requests if "large" in path], "it is there already"


def test_a_download_that_broke_off_goes_on_where_it_was(cloud, source, tmp_path):
    server, storage = cloud
    storage.upload(source, "one")
    server.fault = refuses_range("bytes=10485760-")
    with pytest.raises(OSError, match=r"refuses: object .*one/large: .*403"):
        storage.download("one", tmp_path / "back")
    assert not (tmp_path / "back" / "large").exists()
    server.fault = None
    server.requests.clear()
    storage.download("one", tmp_path / "back")
    assert (tmp_path / "back" / "large").read_bytes() == LARGE
    assert len([1 for method, path in server.requests if path.partition("?")[0].endswith("large")]) < 3


def refuses_range(beginning):
    def fault(handler):
        if not (handler.headers.get("Range") or "").startswith(beginning):
            return False
        handler.say(*handler.error(403, "AccessDenied"))
        return True

    return fault


def test_what_arrives_damaged_is_fetched_again_or_refused(cloud, source, tmp_path):
    server, storage = cloud
    storage.upload(source, "one")
    key = next(key for key in server.objects if key.endswith("small"))
    server.objects[key] = b"12354"
    with pytest.raises(OSError, match="small arrived damaged at byte 0"):
        storage.download("one", tmp_path / "back")
    assert not (tmp_path / "back" / "small").exists()


def test_a_store_that_is_busy_is_asked_again(cloud, source, tmp_path):
    server, storage = cloud
    busy = {"PUT": 2, "GET": 2, "DELETE": 1}

    def fault(handler):
        if busy.get(handler.command, 0) <= 0:
            return False
        busy[handler.command] -= 1
        handler.say(*handler.error(503, "ServerBusy"))
        return True

    server.fault = fault
    storage.upload(source, "one")
    storage.download("one", tmp_path / "back")
    assert (tmp_path / "back" / "small").read_bytes() == b"12345"
    assert storage.delete("one", ["**/*"]) == {}
    assert server.objects == {}


@pytest.mark.parametrize("name", ["small", "large"])
def test_an_upload_that_fails_leaves_nothing(cloud, source, tmp_path, name):
    server, storage = cloud

    def fault(handler):
        if handler.command != "PUT" or not handler.place.endswith(name):
            return False
        handler.say(*handler.error(403, "QuotaExceeded"))
        return True

    server.fault = fault
    transport = FakeTransport([10])
    checkpoint = CheckpointContext(DummyDistributedContext(), storage, transport)
    with pytest.raises(OSError, match="refuses"):
        checkpoint.upload(source, {"steps_completed": 1})
    assert server.objects == {}
    assert transport.log == []


def test_a_file_that_changes_while_it_is_stored(cloud, source, monkeypatch):
    server, storage = cloud
    monkeypatch.setattr(bucket_storage, "list_directory", lambda root: {"large": 30 * MIB})
    with pytest.raises(Exception, match="large became shorter while it was stored"):
        storage.upload(source, "one")
    assert server.objects == {}
    monkeypatch.setattr(bucket_storage, "list_directory", lambda root: {"large": 6 * MIB, "small": 2})
    storage.upload(source, "two")
    assert storage.list_resources("two") == {"large": 6 * MIB, "small": 2}


def test_two_who_delete_at_once_both_succeed(cloud, source):
    server, storage = cloud
    storage.upload(source, "one")
    lists = threading.Barrier(2, timeout=30)
    split = bucket_storage._globs.split

    def both_have_listed(resources, globs):
        lists.wait()
        return split(resources, globs)

    failures = []

    def delete():
        try:
            storage.delete("one", ["**/*"])
        except Exception as error:
            failures.append(error)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bucket_storage._globs, "split", both_have_listed)
        threads = [threading.Thread(target=delete) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    assert server.objects == {}


def test_another_process_gets_no_connections(cloud, source):
    _, storage = cloud
    storage.upload(source, "one")
    assert pickle.loads(pickle.dumps(storage)).list_resources("one") == {"large": len(LARGE), "small": 5}


def test_a_signature_opens_a_container_and_is_never_shown(azure, source, tmp_path, monkeypatch):
    azure.objects.clear()
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", ACCOUNT_KEY[::-1])
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", "http://127.0.0.1:1")
    storage = storage_of(azure, "azure", SAS)
    storage.upload(source, "one")
    storage.download("one", tmp_path / "back")
    assert (tmp_path / "back" / "large").read_bytes() == LARGE
    monkeypatch.setattr(object_store, "_RETRIES", {"max_retries": 0})
    for url in (f"http://127.0.0.1:1/{ACCOUNT}", azure.url.replace(ACCOUNT, "another")):
        stranger = AzureStorageManager(CONTAINER, account_url=url, credential=SAS)
        with pytest.raises(OSError, match=f"container {CONTAINER} at {url} refuses: ") as refused:
            stranger.list_resources("one")
        assert "c2lnbmF0dXJl" not in str(refused.value)


def test_wrong_keys_and_missing_containers_are_reported(azure, gcs, monkeypatch):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs.url)
    wrong = AzureStorageManager(
        CONTAINER, account_url=azure.url, credential=ACCOUNT_KEY[::-1].strip("=") + "=="
    )
    absent = AzureStorageManager("absent", account_url=azure.url, credential=ACCOUNT_KEY)
    for storage, code in (
        (wrong, "AuthenticationFailed"),
        (absent, "ContainerNotFound"),
        (GCSStorageManager("absent"), "NoSuchBucket"),
    ):
        with pytest.raises(OSError, match=rf"refuses: .*{code}: It is so\.; check the (container|bucket)"):
            storage.list_resources("one")


def test_own_certificates_and_why_a_store_cannot_be_reached(tmp_path, monkeypatch):
    monkeypatch.setattr(object_store, "_RETRIES", {"max_retries": 0})
    made = ensure_certificates(tmp_path, tmp_path, "127.0.0.1")
    server, context = CloudServer(AzureHandler), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.certificate, made.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)

    def ask(url):
        AzureStorageManager(CONTAINER, account_url=url, credential=ACCOUNT_KEY).list_resources("one")

    with running(server):
        url = f"{server.url}/{ACCOUNT}".replace("http:", "https:")
        with pytest.raises(OSError, match=r"refuses: .*error sending request: UnknownIssuer; check"):
            ask(url)
        monkeypatch.setenv("SSL_CERT_FILE", str(made.authority))
        with pytest.raises(CheckpointNotFound):
            ask(url)
    with pytest.raises(OSError, match=r"refuses: .*error sending request: ConnectionRefused; check"):
        ask("http://127.0.0.1:1/account")


def test_proxies_are_used(azure, monkeypatch):
    monkeypatch.setattr(object_store, "_RETRIES", {"max_retries": 0})
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with pytest.raises(OSError, match="ConnectionRefused"):
        storage_of(azure, "azure").list_resources("nothing")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with pytest.raises(CheckpointNotFound):
        storage_of(azure, "azure").list_resources("nothing")
