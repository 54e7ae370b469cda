"""Files on their way: one bringer at a time, and nothing under a name before it is whole."""

import errno
import os
import stat
import subprocess
import sys
import threading

import pytest

from determined.storage import SharedFSStorageManager, copying, download
from determined.storage.bucket import Origin
from determined.storage.checksums import Blocks, SummedReader
from determined.storage.listing import list_directory
from determined.storage.partial import PartialFile, partial_name
from determined.storage.progress import Meter

PATIENCE_S = 60
SILENT = Meter(0, None)


@pytest.mark.parametrize(
    ("name", "taken", "hidden"),
    [
        ("f", [], ".f.partial"),
        ("d/e/f", [], "d/e/.f.partial"),
        ("d/f", ["d/.f.partial", ".f.partial"], "d/..f.partial"),
        ("f", [".f.partial", "..f.partial"], "...f.partial"),
        ("n" * 246, [], f".{'n' * 246}.partial"),
    ],
)
def test_names_of_files_that_arrive(name, taken, hidden):
    assert partial_name(name, taken) == hidden


def test_the_longest_names_have_room_for_no_more():
    hidden = {partial_name("d/" + "ü" * 127), partial_name("d/" + "n" * 255), partial_name("d/" + "m" * 255)}
    assert len(hidden) == 3
    assert all(len(name.encode()) <= 255 for name in hidden)


def test_long_names_and_names_of_arriving_files(storage, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    content = {"n" * 255: "1", "f": "2", ".f.partial": "3", "..f.partial": "4", "..f.partial.partial": "5"}
    for name, text in content.items():
        (source / name).write_text(text)
    storage.upload(source, "one")
    storage.download("one", tmp_path / "back")
    assert {p.name: p.read_text() for p in (tmp_path / "back").iterdir()} == content


def arriving(tmp_path):
    return PartialFile(tmp_path / "f", tmp_path / ".f.partial")


def test_the_second_waits_for_the_first_and_begins_anew(tmp_path):
    first, got = arriving(tmp_path), []
    first.write(memoryview(b"12345"), 0)
    second = threading.Thread(target=lambda: got.append(arriving(tmp_path)), daemon=True)
    second.start()
    assert not got
    first.finish()
    first.close()
    second.join(PATIENCE_S)
    (file,) = got
    assert not file.begun(), "what has its name already is not written to"
    file.close()
    assert (tmp_path / "f").read_bytes() == b"12345"


def test_what_somebody_took_away_gets_no_name(tmp_path):
    file = arriving(tmp_path)
    (tmp_path / ".f.partial").unlink()
    (tmp_path / ".f.partial").write_text("of somebody else")
    with pytest.raises(OSError, match=r"\.f\.partial was taken away"):
        file.finish()
    file.remove()
    file.close()
    assert [p.name for p in tmp_path.iterdir()] == [".f.partial"]


def test_a_full_disk_is_reported_with_the_file(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    store = Store(b"0123456789")
    store.gate.set()
    with pytest.raises(OSError, match=r"No space left on device: '.*/\.f\.partial'"):
        download.download(store, "id/", tmp_path, {"f": 10}, {}, SILENT)
    assert len(store.requests) == 1, "another try would not help"
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_free(tmp_path):
    script = (
        "import os, pathlib, sys; from determined.storage.partial import PartialFile\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "file = PartialFile(path / 'f', path / '.f.partial'); file.write(memoryview(b'1'), 0)\n"
        "os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False).returncode == -9
    file = arriving(tmp_path)
    assert (file.begun(), file.waited) == (True, False)
    file.close()


class Store:
    """One object; whoever asks first for a range is held up until `gate` opens."""

    origin = Origin(None, "")

    def __init__(self, content):
        self.content, self.requests, self.gate = content, [], threading.Event()
        self.busy = threading.Event()

    def get(self, key, offset, length):
        return self

    def __enter__(self):
        self.requests.append(1)
        self.busy.set()
        assert self.gate.wait(PATIENCE_S)
        self.at = 0
        return self

    def __exit__(self, *_):
        pass

    def readinto(self, buffer):
        part = self.content[self.at : self.at + len(buffer)]
        buffer[: len(part)] = part
        self.at += len(part)
        return len(part)


def sums(content):
    import io

    reader = SummedReader(io.BytesIO(content), len(content), 1 << 20, SILENT)
    while reader.read(4096):
        pass
    return reader.blocks()


@pytest.mark.parametrize("with_checksums", [True, False])
def test_two_downloads_into_one_folder(tmp_path, with_checksums, caplog):
    content = b"0123456789" * 50
    blocks = {"f": sums(content)} if with_checksums else {}
    store, failed = Store(content), []

    def fetch():
        try:
            download.download(store, "id/", tmp_path, {"f": len(content)}, blocks, SILENT)
        except BaseException as error:
            failed.append(error)

    caplog.set_level("INFO", "determined.storage")
    caplog.handler.addFilter(
        lambda record: ("waiting for another process" in record.getMessage() and store.gate.set()) or True
    )
    team = [threading.Thread(target=fetch, daemon=True) for _ in range(2)]
    for member in team:
        member.start()
    for member in team:
        member.join(PATIENCE_S)
    assert failed == []
    assert (tmp_path / "f").read_bytes() == content
    assert [p.name for p in tmp_path.iterdir()] == ["f"]
    assert len(store.requests) == (1 if with_checksums else 2), "what has come whole is not fetched again"


def test_two_copies_into_one_folder(tmp_path, monkeypatch):
    source, storage = tmp_path / "source", SharedFSStorageManager(tmp_path / "store")
    source.mkdir()
    (source / "f").write_text("x" * 100_000)
    storage.upload(source, "one")
    both, failed, copy = threading.Barrier(2), [], copying.copy_file

    def together(*arguments):
        both.wait(PATIENCE_S)
        copy(*arguments)

    monkeypatch.setattr(copying, "copy_file", together)

    def fetch():
        try:
            storage.download("one", tmp_path / "back")
        except BaseException as error:
            failed.append(error)

    for _ in range(20):
        team = [threading.Thread(target=fetch) for _ in range(2)]
        for member in team:
            member.start()
        for member in team:
            member.join()
        assert failed == []
        assert [p.name for p in (tmp_path / "back").iterdir()] == ["f"]
        assert (tmp_path / "back" / "f").read_text() == "x" * 100_000


def test_files_that_may_only_be_read_stay_so(tmp_path):
    source, storage = tmp_path / "source", SharedFSStorageManager(tmp_path / "store")
    source.mkdir()
    (source / "f").write_text("1")
    (source / "f").chmod(0o440)
    storage.upload(source, "one")
    for _ in range(2):
        storage.download("one", tmp_path / "back")
        assert stat.S_IMODE((tmp_path / "back" / "f").stat().st_mode) == 0o440


@pytest.mark.parametrize("size", [0, 1, 1 << 20, (1 << 20) + 1, 2 << 20])
def test_blocks_of_sizes_around_a_block(size):
    blocks = sums(b"x" * size)
    assert blocks.fit(size)
    assert len(blocks.crcs) == -(-size // (1 << 20))


@pytest.mark.parametrize(
    "blocks", [Blocks(9, 4, [1, 2, 3]), Blocks(10, 0, []), Blocks(10, 4, [1]), Blocks(0, 4, [])]
)
def test_checksums_that_do_not_fit_say_nothing(blocks):
    assert not blocks.fit(10)


def test_a_named_pipe_is_refused_and_not_waited_for(storage, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    os.mkfifo(source / "pipe")
    with pytest.raises(ValueError, match="pipe is neither a file nor a directory"):
        storage.upload(source, "one")


def test_names_that_are_no_text_are_refused(storage, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / os.fsdecode(b"\xff")).write_text("")
    with pytest.raises(ValueError, match="is not in UTF-8"):
        storage.upload(source, "one")


def test_a_link_to_nothing_is_named(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match="link"):
        list_directory(tmp_path)
