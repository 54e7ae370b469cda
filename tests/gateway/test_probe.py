"""Checkpoint storage is tried before anything runs."""

from __future__ import annotations

import os

import pytest

from det_contracts.problems import Refused
from det_contracts.roots import Roots
from services.gateway.submit.probe import probe
from services.kit.addresses import Addresses
from services.kit.storage import can_write_and_read
from services.kit.storage import probe as try_before_start
from tests.fixtures.s3_server import BUCKET, KEY, SECRET, s3_server


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


@pytest.mark.parametrize("storage", [{"type": "gcs", "bucket": "b"}, {"type": "azure", "container": "c"}])
def test_a_store_that_is_not_offered_is_refused_before_anything_runs(storage):
    with pytest.raises(Refused, match=f"storage of type {storage['type']} is not offered: .*[sS]3"):
        probe(storage, None, Addresses())
