"""Contexts that are whole, damaged, or mean harm."""

import gzip
import io
import os
import tarfile

import pytest

from worker import workdir
from worker.workdir import BadContext, remove, unpack


@pytest.fixture
def places(tmp_path):
    return tmp_path / "in" / "workdir", tmp_path / "in" / "model"


def archive(path, *members):
    """Members are (name, content or None for a folder) or whole TarInfo records."""
    with tarfile.open(path, "w:gz") as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
                continue
            name, content = member
            info = tarfile.TarInfo(name)
            info.mtime = 1_600_000_000
            if content is None:
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(info)
            else:
                info.size, info.mode = len(content), 0o640
                tar.addfile(info, io.BytesIO(content))
    return path


def tree(folder):
    return {
        str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))
    }


def test_both_copies_hold_everything(tmp_path, places):
    members = [("pkg", None), ("pkg/a.py", b"x = 1\n"), ("empty", None), ("ä b.txt", b"")]
    unpack(archive(tmp_path / "c.tar.gz", *members, ("deep/er/c", b"c")), *places)
    expected = {
        "pkg": None,
        "pkg/a.py": b"x = 1\n",
        "empty": None,
        "ä b.txt": b"",
        "deep": None,
        "deep/er": None,
        "deep/er/c": b"c",
    }
    for place in places:
        assert tree(place) == expected
        assert (place / "pkg/a.py").stat().st_mtime == 1_600_000_000


def test_it_starts_from_nothing_each_time(tmp_path, places):
    source = archive(tmp_path / "c.tar.gz", ("a", b"1"))
    unpack(source, *places)
    (places[0] / "a").write_text("changed")
    (places[0] / "new").write_text("left")
    unpack(source, *places)
    assert tree(places[0]) == tree(places[1]) == {"a": b"1"}


def test_an_empty_context(tmp_path, places):
    unpack(archive(tmp_path / "c.tar.gz"), *places)
    assert tree(places[0]) == {}


@pytest.mark.parametrize("name", ["../out", "/abs", "a/../../out", "a/.."])
def test_no_way_out(tmp_path, places, name):
    with pytest.raises(BadContext, match="leads out of the working directory"):
        unpack(archive(tmp_path / "c.tar.gz", (name, b"x")), *places)
    assert not (tmp_path / "in" / "out").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_only_files_and_folders(tmp_path, places, kind):
    info = tarfile.TarInfo("odd")
    info.type, info.linkname = kind, "/etc/passwd"
    with pytest.raises(BadContext, match="'odd' is neither a file nor a folder"):
        unpack(archive(tmp_path / "c.tar.gz", info), *places)


def test_a_name_that_is_file_and_folder(tmp_path, places):
    with pytest.raises(BadContext, match="both a file and a folder"):
        unpack(archive(tmp_path / "c.tar.gz", ("a", b"1"), ("a/b", b"2")), *places)


def test_an_archive_that_unpacks_to_too_much(tmp_path, places):
    source = archive(tmp_path / "c.tar.gz", ("zeros", bytes(10_000)))
    with pytest.raises(BadContext, match="more than 9,999 bytes"):
        unpack(source, *places, limit_bytes=9_999)


@pytest.mark.parametrize("damage", [lambda data: data[:20_000], lambda _: b"no archive", lambda _: b""])
def test_a_damaged_archive(tmp_path, places, damage):
    source = archive(tmp_path / "c.tar.gz", ("a", os.urandom(50_000)))
    source.write_bytes(damage(source.read_bytes()))
    with pytest.raises(BadContext, match="damaged"):
        unpack(source, *places)


def test_set_user_id_is_not_kept(tmp_path, places):
    info = tarfile.TarInfo("tool")
    info.mode = 0o4755
    unpack(archive(tmp_path / "c.tar.gz", info), *places)
    assert (places[0] / "tool").stat().st_mode & 0o7777 == 0o755


def test_remove_also_what_was_locked(tmp_path):
    inner = tmp_path / "run" / "locked"
    inner.mkdir(parents=True)
    (inner / "f").write_text("x")
    inner.chmod(0o500)
    remove(tmp_path / "run")
    remove(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_code_that_lies_too_deep(tmp_path, places):
    with pytest.raises(BadContext, match="200 folders deep"):
        unpack(archive(tmp_path / "c.tar.gz", ("a/" * 1500 + "f", b"x")), *places)
    for place in places:
        remove(place)
        assert not place.exists()


def test_too_many_members(tmp_path, places, monkeypatch):
    monkeypatch.setattr(workdir, "MAX_MEMBERS", 3)
    with pytest.raises(BadContext, match="more than 3 files"):
        unpack(archive(tmp_path / "c.tar.gz", *[(str(n), None) for n in range(4)]), *places)


def test_remove_also_what_a_script_made_deeper_than_a_path_can_be(tmp_path):
    held = os.open(tmp_path, os.O_RDONLY)
    for _ in range(2500):
        os.mkdir("folder", dir_fd=held)
        inner = os.open("folder", os.O_RDONLY, dir_fd=held)
        os.close(held)
        held = inner
    os.close(held)
    remove(tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_header_of_gigabytes_is_refused_unread(tmp_path, places, kind):
    header = tarfile.TarInfo("header")
    header.type, header.size = kind, 3 << 30
    packed = tmp_path / "c.tar.gz"
    with gzip.open(packed, "wb") as file:
        # Truncated: whoever would read it all says that it is damaged.
        file.write(header.tobuf(tarfile.GNU_FORMAT) + b"0" * 2048)
    with pytest.raises(BadContext, match=f"header in the archive.* has {3 << 30:,} bytes"):
        unpack(packed, *places)


def test_a_name_that_takes_a_header_of_its_own_is_unpacked(tmp_path, places):
    name = "/".join(["ä" * 100] * 8)
    unpack(archive(tmp_path / "c.tar.gz", (name, b"x" * 5_000_000)), *places)
    assert (places[0] / name).stat().st_size == 5_000_000
