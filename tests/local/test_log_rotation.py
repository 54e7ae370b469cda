"""What programs print does not fill the disk, and whoever follows it goes on."""

import shutil
import subprocess
import sys

from services.local import log_rotation, logs


def test_a_long_log_becomes_the_old_one(tmp_path):
    (tmp_path / "gateway.log").write_bytes(b"x" * 101)
    (tmp_path / "worker.log").write_bytes(b"y" * 100)
    assert log_rotation.rotate(tmp_path, largest=100) == [tmp_path / "gateway.log"]
    assert (tmp_path / "gateway.log.1").read_bytes() == b"x" * 101
    assert (tmp_path / "gateway.log").read_bytes() == b""
    assert (tmp_path / "worker.log").read_bytes() == b"y" * 100


def test_a_program_goes_on_in_its_emptied_log(tmp_path):
    log = tmp_path / "gateway.log"
    script = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
    with log.open("ab") as output:
        program = subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=output, text=True
        )

    def has_said(text):
        program.stdin.write(f"{text}\n")
        program.stdin.flush()
        while text not in log.read_text():
            assert program.poll() is None

    has_said("before" * 20)
    log_rotation.rotate(tmp_path, largest=100)
    has_said("after")
    program.stdin.close()
    assert program.wait() == 0
    assert log.read_text() == "after\n"


def test_without_room_for_the_old_log_the_new_one_is_emptied_all_the_same(tmp_path, monkeypatch):
    def no_room(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", no_room)
    (tmp_path / "gateway.log").write_bytes(b"x" * 101)
    log_rotation.rotate(tmp_path, largest=100)
    assert (tmp_path / "gateway.log").read_bytes() == b""


def test_who_follows_goes_on_with_the_emptied_log(tmp_path, capsys):
    log = tmp_path / "gateway.log"
    log.write_text("long before\n")
    place = logs._print_from(log, 0)
    log.write_text("now\n")
    assert logs._print_from(log, place) == 4
    assert capsys.readouterr().out.split("\n")[1].endswith("| now")


def test_settings_that_are_refused_are_found_in_an_emptied_log(tmp_path):
    log = tmp_path / "gateway.log"
    log.write_text("long before, long before, long before\n")
    before = logs.log_sizes(tmp_path)
    log.write_text("settings.refused\n")
    assert logs.refusals(tmp_path, before) == ["  gateway: settings.refused"]
