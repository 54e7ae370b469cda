"""Files of a local cluster that a power loss left empty or cut: told, kept, and made again."""

import json

import pytest

from services.kit import files
from services.kit.files import damaged_copies, write_atomic
from services.local.home import Home, Plan, ProgramRequest
from services.local.keys import KeysDamaged, ensure_secret, write_keys
from services.local.preconditions import is_running
from services.local.supervisor import Cluster

DAMAGED = [b"", b"\0" * 100, b'{"name": "te', b"[]", b"\xff\xfe"]


@pytest.mark.parametrize("content", DAMAGED, ids=["empty", "zeros", "cut", "list", "no text"])
def test_a_damaged_file_is_reported_and_read_as_absent(tmp_path, capsys, content):
    home = Home("test", tmp_path)
    home.write_plan(Plan(name="test"))
    home.write_request("searcher", ProgramRequest(stopped=True))
    for name in ("plan.json", "request-searcher.json", "processes.json"):
        home.folder()
        (home.path / name).write_bytes(content)
        assert home.read(name) is None
        assert str(home.path / name) in capsys.readouterr().err
        (damaged_copy,) = damaged_copies(home.path / name)
        assert damaged_copy.read_bytes() == content
    assert (home.plan(), home.read_request("searcher"), is_running(home)) == (None, ProgramRequest(), False)


def test_ports_that_were_lost_are_chosen_again(tmp_path, capsys):
    home = Home("test", tmp_path)
    Cluster(Plan(name="test"), home)
    (home.path / "ports.json").write_bytes(b"")
    Cluster(Plan(name="test"), home)
    assert len(json.loads((home.path / "ports.json").read_text())) == 10


def test_a_plan_of_a_later_version_is_understood_as_far_as_it_can_be(tmp_path):
    home = Home("test", tmp_path)
    home.write("plan.json", {"name": "test", "port": 9, "unheard_of": True})
    assert home.plan() == Plan(name="test", port=9)


def test_a_number_that_another_process_has_by_now_is_no_cluster(tmp_path):
    home = Home("test", tmp_path)
    home.write("processes.json", {"supervisor": 1})
    assert not is_running(home)


@pytest.mark.parametrize("content", ["", '{"operator_seed": "SO', "null", '{"a": 1}'])
def test_damaged_keys_are_not_made_anew(tmp_path, content):
    write_keys(tmp_path)
    (tmp_path / "authority.json").write_text(content)
    with pytest.raises(KeysDamaged, match=r"authority\.json is damaged .* backup"):
        write_keys(tmp_path)
    assert (tmp_path / "authority.json").read_text() == content


def test_an_empty_secret_is_made_again_and_any_other_is_left(tmp_path, capsys):
    path = tmp_path / "token-key"
    first = ensure_secret(path).read_text()
    assert ensure_secret(path).read_text() == first
    path.write_text("")
    assert len(ensure_secret(path).read_text()) == 64
    assert "empty" in capsys.readouterr().err
    path.write_text("chosen by hand, 32 bytes at least")
    assert ensure_secret(path).read_text() == "chosen by hand, 32 bytes at least"


def test_what_is_written_is_flushed_before_it_has_the_name(tmp_path, monkeypatch):
    path = tmp_path / "it"
    path.write_bytes(b"before")
    contents = []
    monkeypatch.setattr(files.os, "fsync", lambda _: contents.append(path.read_bytes()))
    write_atomic(path, b"after")
    # The content, while the name still means the old one; then the folder, which has the new one.
    assert contents == [b"before", b"after"]
    assert list(tmp_path.iterdir()) == [path]


def test_what_need_not_last_is_not_flushed(tmp_path, monkeypatch):
    monkeypatch.setattr(files.os, "fsync", lambda _: pytest.fail("flushed"))
    write_atomic(tmp_path / "it", b"after", durable=False)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == {tmp_path / "it": b"after"}


def test_what_cannot_be_written_leaves_everything_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "it"
    path.write_bytes(b"before")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomic(path, b"after")
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == {path: b"before"}
