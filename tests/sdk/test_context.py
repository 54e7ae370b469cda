from __future__ import annotations

import base64
import os
import socket
import stat

import pytest

from determined import context

FLAT = ["A.py", "B.py", "C.py"]
NESTED = ["A.py", "B.py", "subdir/A.py", "subdir/B.py"]
DEEP = ["dir/file.py", "dir/subdir/A.py", "dir/subdir/B.py", "dir/subdir/subdir/subdir/C.py"]


def make(root, paths, ignore=None):
    for path in paths:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"content of {path}")
    if ignore is not None:
        root.mkdir(exist_ok=True)
        (root / ".detignore").write_text(ignore)
    return root


def sent(root, includes=()):
    return [item["path"] for item in context.pack(root, includes)]


@pytest.mark.parametrize(
    ("tree", "ignore", "expected"),
    [
        (FLAT, "A.py", ["B.py", "C.py"]),
        (FLAT, "*.py", []),
        (FLAT, "\ufeffA.py\r\nB.py\r\n", ["C.py"]),
        (NESTED, "A.py", ["B.py", "subdir", "subdir/B.py"]),
        (NESTED, "subdir/A.py", ["A.py", "B.py", "subdir", "subdir/B.py"]),
        (NESTED, "*.py", ["subdir"]),
        (NESTED, "subdir", ["A.py", "B.py"]),
        (NESTED, "subdir/", ["A.py", "B.py"]),
        (DEEP, "dir/sub*/", ["dir", "dir/file.py"]),
        (DEEP, "dir/sub*", ["dir", "dir/file.py"]),
        (DEEP, "dir/*/", ["dir", "dir/file.py"]),
        (DEEP, "dir/*", ["dir"]),
        (NESTED, "# a comment\n\n*.py\n!B.py\n", ["B.py", "subdir", "subdir/B.py"]),
        (NESTED, "!.detignore", ["A.py", "B.py", "subdir", "subdir/A.py", "subdir/B.py"]),
        (FLAT, None, FLAT),
    ],
)
def test_the_ignore_file_decides_what_is_sent(tmp_path, tree, ignore, expected):
    assert sent(make(tmp_path, tree, ignore)) == expected


@pytest.mark.parametrize(
    "path",
    [
        "__pycache__/a.cpython-311.pyc",
        "deep/__pycache__/a.txt",
        "a.pyc",
        "deep/a.pyo",
        "a$py.class",
        "terraform",
        "terraform_data",
        "terraform.tfstate.backup",
        "terraform.tfvars",
        ".terraform.lock.hcl",
        ".git/config",
        ".vscode/settings.json",
        ".idea/x.xml",
        ".mypy_cache/x",
        "shared_fs/data",
        "deep/.detignore",
    ],
)
def test_some_files_are_never_sent(tmp_path, path):
    make(tmp_path, ["keep.py", path])
    assert [name for name in sent(tmp_path) if name != "deep"] == ["keep.py"]


def test_shared_fs_is_left_out_at_the_top_only(tmp_path):
    assert sent(make(tmp_path, ["a/shared_fs/x"])) == ["a", "a/shared_fs", "a/shared_fs/x"]


def test_a_packed_file_carries_what_unpacking_needs(tmp_path):
    script = make(tmp_path, ["bin/run.sh"]) / "bin" / "run.sh"
    script.chmod(0o754)
    os.utime(script, (1_700_000_000.9, 1_700_000_000.9))
    folder, file = context.pack(tmp_path)
    assert folder == {**folder, "path": "bin", "type": 53, "content": "", "uid": 0, "gid": 0}
    assert stat.S_IMODE((tmp_path / "bin").stat().st_mode) == folder["mode"]
    assert file == {
        "path": "bin/run.sh",
        "type": 48,
        "content": base64.b64encode(b"content of bin/run.sh").decode(),
        "mtime": "1700000000",
        "mode": 0o754,
        "uid": 0,
        "gid": 0,
    }


def test_links_to_files_are_sent_by_content_links_to_directories_empty(tmp_path):
    outside = make(tmp_path / "outside", ["data/x"])
    root = make(tmp_path / "root", ["a.py"])
    (root / "link.txt").symlink_to(outside / "data" / "x")
    (root / "linked").symlink_to(outside / "data")
    items = {item["path"]: item for item in context.pack(root)}
    assert set(items) == {"a.py", "link.txt", "linked"}
    assert base64.b64decode(items["link.txt"]["content"]) == b"content of data/x"
    assert items["linked"]["type"] == 53


def test_what_cannot_be_read_is_left_out_with_a_message(tmp_path, caplog, monkeypatch):
    root = make(tmp_path, ["a.py", "secret.txt"])
    (root / "broken").symlink_to("nowhere")
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(root)
        server.bind("sock")
    read = type(root).read_bytes

    def refuse_secret(path):
        if path.name == "secret.txt":
            raise PermissionError(13, "Permission denied")
        return read(path)

    monkeypatch.setattr(type(root), "read_bytes", refuse_secret)
    assert sent(root) == ["a.py"]
    for name, reason in [
        ("secret.txt", "Permission"),
        ("broken", "No such file"),
        ("pipe", "neither"),
        ("sock", "neither"),
    ]:
        assert any(name in line and reason in line for line in caplog.messages)


def test_a_name_that_is_not_utf8_is_left_out(tmp_path, caplog):
    make(tmp_path, ["a.py"])
    open(os.fsencode(tmp_path) + b"/caf\xe9.txt", "w").close()
    assert sent(tmp_path) == ["a.py"]
    assert "caf" in caplog.text


def test_an_ignored_broken_link_is_not_worth_a_message(tmp_path, caplog):
    make(tmp_path, ["a.py"], "broken")
    (tmp_path / "broken").symlink_to("nowhere")
    assert sent(tmp_path) == ["a.py"]
    assert caplog.text == ""


def test_a_file_is_not_a_directory(tmp_path):
    with pytest.raises(context.ContextError, match="must be a directory, maybe use an include instead"):
        context.pack(make(tmp_path, ["a.py"]) / "a.py")


def test_a_directory_that_is_not_there_is_no_matter_of_includes(tmp_path):
    with pytest.raises(context.ContextError, match=r"^there is no directory '.*nowhere'"):
        context.pack(tmp_path / "nowhere")


def test_includes_keep_their_base_name(tmp_path):
    root = make(tmp_path / "model", ["a.py"])
    extra = make(tmp_path / "libs" / "shared", ["x.py", "skip.txt", "in/y.py"], "skip.txt")
    single = make(tmp_path, ["notes.md"]) / "notes.md"
    assert sent(root, [extra, single]) == [
        "a.py",
        "shared",
        "shared/in",
        "shared/x.py",
        "shared/in/y.py",
        "notes.md",
    ]


@pytest.mark.parametrize(
    ("includes", "message"),
    [
        (["other/a.py"], "duplicate path detected"),
        (["one/lib", "two/lib"], "duplicate path detected"),
        (["/"], "no name under which it could be sent"),
        ([".."], "no name under which it could be sent"),
        (["missing.txt"], "not a readable file"),
    ],
)
def test_includes_that_cannot_be(tmp_path, monkeypatch, includes, message):
    make(tmp_path, ["model/a.py", "other/a.py", "one/lib/x", "two/lib/x"])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(context.ContextError, match=message):
        context.pack(tmp_path / "model", [type(tmp_path)(include) for include in includes])


def test_an_include_may_take_the_place_of_an_ignored_entry(tmp_path):
    root = make(tmp_path / "model", ["a.py", "lib/old"], "lib")
    assert sent(root, [make(tmp_path / "new" / "lib", ["x"])]) == ["a.py", "lib", "lib/x"]


def test_too_much_is_refused_before_anything_is_read(tmp_path, monkeypatch):
    big = make(tmp_path, ["a.py", "big.bin"]) / "big.bin"
    os.truncate(big, context.LIMIT_BYTES)
    monkeypatch.setattr(type(big), "read_bytes", lambda path: pytest.fail(f"read {path}"))
    with pytest.raises(context.ContextError, match=r"99,614,720 .*\.detignore"):
        context.pack(tmp_path)


def test_includes_count_towards_the_limit(tmp_path):
    extra = make(tmp_path, ["extra.bin"]) / "extra.bin"
    root = make(tmp_path / "model", ["big.bin"])
    os.truncate(extra, context.LIMIT_BYTES // 2)
    os.truncate(root / "big.bin", context.LIMIT_BYTES // 2 + 2)
    with pytest.raises(context.ContextError, match="limit"):
        context.pack(root, [extra])


def test_ignored_files_do_not_count(tmp_path):
    os.truncate(make(tmp_path, ["a.py", "big.bin"], "big.bin") / "big.bin", context.LIMIT_BYTES + 1)
    assert sent(tmp_path) == ["a.py"]


def test_a_file_that_grows_meanwhile_is_still_refused(tmp_path, monkeypatch):
    make(tmp_path, ["a.py"])
    monkeypatch.setattr(context, "LIMIT_BYTES", 20)
    monkeypatch.setattr(type(tmp_path), "read_bytes", lambda path: b"x" * 21)
    with pytest.raises(context.ContextError, match="limit"):
        context.pack(tmp_path)


def test_progress_is_printed_in_bytes_and_files(tmp_path):
    make(tmp_path, NESTED)
    calls = []
    context.pack(tmp_path, on_file=lambda size, count: calls.append((size, count)))
    assert [count for _, count in calls] == [1, 2, 3, 4]
    assert calls[-1][0] == sum((tmp_path / path).stat().st_size for path in NESTED)
