"""Checkpoint storage is tried before anything runs."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from det_contracts.problems import Refused
from det_contracts.roots import Roots
from services.kit.addresses import Addresses
from services.kit.checkpoint_files import File, FilesMissing, opener
from services.kit.storage import StorageRefused, can_write_and_read
from services.kit.storage import probe as try_before_start
from services.submission import probe as submit_probe
from services.submission.probe import probe
from tests.fixtures.azure_server import ACCOUNT_KEY, CONTAINER, SAS, azure_server
from tests.fixtures.gcs_server import GCS_BUCKET, gcs_server
from tests.fixtures.s3_server import BUCKET, KEY, SECRET, s3_server
from worker.account import Account, file_access_as

UUID = "0b2f6f0e-6f0c-4a39-9a55-0d8ad7ad3a51"


def _roots(*paths):
    return Roots(tuple(str(path) for path in paths))


def _shared(path, **more):
    return {"type": "shared_fs", "host_path": str(path), **more}


def test_a_directory_that_works_is_left_as_it_was(tmp_path):
    (tmp_path / "kept").write_text("x")
    probe(_shared(tmp_path), _roots(tmp_path), Addresses())
    probe(_shared(tmp_path, storage_path="new/deep"), _roots(tmp_path), Addresses())
    probe({"type": "directory", "container_path": str(tmp_path)}, _roots(tmp_path), Addresses())
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_refusal_names_path_and_user(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("x")
    for storage in (_shared(blocked), _shared(blocked, storage_path="deep")):
        with pytest.raises(Refused) as refused:
            probe(storage, _roots(tmp_path), Addresses())
        message = refused.value.problem.message
        assert str(blocked) in message
        assert f"user id {os.getuid()}" in message
    with pytest.raises(Refused, match="missing"):
        probe(
            {"type": "directory", "container_path": str(tmp_path / "missing")}, _roots(tmp_path), Addresses()
        )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_a_directory_need_not_be_listed():
    """In one with the mode 1733, nobody sees the ids of checkpoints that others are about to register."""
    folder = Path(tempfile.mkdtemp())
    try:
        (folder / "uploads").mkdir()
        folder.chmod(0o711)
        (folder / "uploads").chmod(0o1733)
        with file_access_as(Account(65534, 65534, "nobody")):
            with pytest.raises(PermissionError):
                os.listdir(folder / "uploads")
            assert can_write_and_read(folder / "uploads", b"x")
        assert list((folder / "uploads").iterdir()) == []
    finally:
        shutil.rmtree(folder)


def test_nothing_is_left_where_a_link_led_that_is_changed_meanwhile(tmp_path, monkeypatch):
    before, after, link = tmp_path / "before", tmp_path / "after", tmp_path / "link"
    before.mkdir()
    after.mkdir()
    link.symlink_to(before)
    write = os.write

    def changed(file, content):
        link.unlink()
        link.symlink_to(after)
        return write(file, content)

    monkeypatch.setattr(os, "write", changed)
    assert can_write_and_read(link, b"x")
    assert list(before.iterdir()) == list(after.iterdir()) == []


def test_directories_of_other_hosts_are_not_tried(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("x")
    probe(_shared(blocked), None, Addresses())


def test_nothing_is_made_outside_of_the_roots(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path)
    outside = [_shared(tmp_path / "other"), _shared(tmp_path / "root" / "link", storage_path="other")]
    outside.append({"type": "directory", "container_path": str(tmp_path / "missing")})
    for storage in outside:
        probe(storage, _roots(tmp_path / "root"), Addresses())
        try_before_start(storage, _roots(tmp_path / "root"))
    assert [path.name for path in tmp_path.iterdir()] == ["root"]


@pytest.mark.live
def test_a_bucket_is_tried_with_the_keys_that_are_given(tmp_path):
    with s3_server(tmp_path) as url:
        good = {
            "type": "s3",
            "bucket": BUCKET,
            "access_key": KEY,
            "secret_key": SECRET,
            "endpoint_url": url,
            "prefix": "a/b",
        }
        probe(good, None, Addresses([url]))
        assert [path for path in (tmp_path / "objects").rglob("*") if path.is_file()] == []
        for wrong in ({"secret_key": "no"}, {"bucket": "none"}, {"endpoint_url": "nonsense"}):
            with pytest.raises(Refused, match=r"<config>\.checkpoint_storage cannot be used"):
                probe(good | wrong, None, Addresses([url]))
        unasked = {"access_key": None, "secret_key": None, "endpoint_url": "http://nowhere.invalid"}
        probe(good | unasked, None, Addresses([url]))


@pytest.fixture
def azure():
    with azure_server() as server:
        yield server


def _container(server, **more):
    account = {"account_url": server.url, "credential": ACCOUNT_KEY}
    return {"type": "azure", "container": CONTAINER, **account, **more}


def test_a_container_is_tried_with_the_credential_that_is_given(azure):
    allowed = Addresses(allowed="127.0.0.0/8")
    for credential in (ACCOUNT_KEY, SAS):
        probe(_container(azure, credential=credential), None, allowed)
        try_before_start(_container(azure, credential=credential), _roots())
    assert [method for method, _ in azure.requests] == ["PUT", "GET", "POST"] * 4
    assert azure.objects == {}
    for wrong, message in (
        ({"credential": ACCOUNT_KEY[::-1].strip("=") + "=="}, "it answers AuthenticationFailed"),
        ({"container": "none"}, "it answers ContainerNotFound"),
        ({"credential": None}, "name a credential"),
        ({"account_url": "nonsense"}, "must give an address like"),
    ):
        with pytest.raises(Refused, match=rf"<config>\.checkpoint_storage cannot be used: .*{message}"):
            probe(_container(azure, **wrong), None, allowed)


@pytest.mark.parametrize("allowed", ["", "10.0.0.0/8", "other.example", "127.0.0.1:1"])
def test_a_container_elsewhere_than_at_azure_is_not_asked(azure, allowed):
    for url in (azure.url, azure.url.replace("127.0.0.1", "localhost"), "http://1.1.1.1/account"):
        with pytest.raises(Refused, match=r"is not an address of Azure.*STEADFAST_REACHABLE"):
            probe(_container(azure, account_url=url), None, Addresses(allowed=allowed))
        with pytest.raises(FilesMissing, match="is not an address of Azure"):
            opener(_container(azure, account_url=url), UUID, [], _roots(), Addresses(allowed=allowed))
    assert azure.requests == []


def test_an_answer_of_a_container_is_not_shown(azure):
    def fault(handler):
        handler.say(500, b"<Error><Code>WhatOnlyTheNetworkMayRead</Code></Error>")
        return True

    azure.fault = fault
    with pytest.raises(Refused, match="it does not answer as such a store does") as refused:
        probe(_container(azure), None, Addresses(allowed="127.0.0.0/8"))
    assert "OnlyTheNetwork" not in str(refused.value)


def test_a_container_that_hangs_is_left(azure, monkeypatch):
    monkeypatch.setattr(submit_probe, "WITHIN_S", 0.6)
    # Until the end of the test: so would this.
    azure.fault = lambda handler: azure.over.wait() or True
    with pytest.raises(Refused, match="does not answer"):
        probe(_container(azure), None, Addresses(allowed="127.0.0.0/8"))


def test_other_content_than_was_written_is_noticed(azure):
    def fault(handler):
        if handler.command == "GET":
            headers = {"Last-Modified": "Sat, 21 Nov 2026 12:00:00 GMT", "ETag": "1"}
            handler.say(200, b"something else", headers)
        return handler.command == "GET"

    azure.fault = fault
    with pytest.raises(Refused, match="does not return what was written to it"):
        probe(_container(azure), None, Addresses(allowed="127.0.0.0/8"))
    assert azure.objects == {}


def test_googles_store_is_tried_where_a_task_will_run(monkeypatch):
    storage = {"type": "gcs", "bucket": GCS_BUCKET, "prefix": "/a/b/"}
    with gcs_server() as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        probe(storage, None, Addresses())
        assert server.requests == []
        try_before_start(storage, _roots())
        assert [method for method, _ in server.requests] == ["PUT", "GET", "DELETE"]
        with pytest.raises(StorageRefused, match=r"gs://other/a/b.* \(as user .*NoSuchBucket"):
            try_before_start(storage | {"bucket": "other"}, _roots())


@pytest.mark.parametrize("kind", ["gcs", "azure"])
def test_files_are_read_for_a_download_through_the_master(azure, monkeypatch, kind):
    with gcs_server() as google:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", google.url)
        storage = {"type": "gcs", "bucket": GCS_BUCKET, "prefix": "p"} if kind == "gcs" else _container(azure)
        content = bytes(range(256)) * 10_000
        server, key = (google, f"p/{UUID}/sub/file") if kind == "gcs" else (azure, f"{UUID}/sub/file")
        server.objects[key] = content
        files = [File("sub/file", len(content)), File("absent", 1)]
        source = opener(storage, UUID, files, _roots(), Addresses(allowed="127.0.0.0/8"))
        with source.read(files[0]) as stream:
            assert stream.read() == content
        with pytest.raises(FilesMissing, match=r"absent in .* cannot be read: it"), source.read(files[1]):
            pass
