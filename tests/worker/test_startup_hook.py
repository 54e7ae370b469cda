"""The hook before a command."""

import subprocess

import pytest

from worker.startup_hook import add_hook


def run(argv, cwd):
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.live
@pytest.mark.parametrize("shell", ["bash", "sh"])
class TestHook:
    def test_its_exports_reach_the_command_and_its_lines_are_shown(self, tmp_path, shell):
        (tmp_path / "startup-hook.sh").write_text("export GREETING='good morning'\n")
        done = run(add_hook(["sh", "-c", 'echo "$GREETING, $1"', "x", "it's $5"], shell), tmp_path)
        assert done.stdout == "good morning, it's $5\n"
        assert "export" in done.stderr
        assert "echo" not in done.stderr

    def test_a_failing_line_ends_the_task(self, tmp_path, shell):
        (tmp_path / "startup-hook.sh").write_text("sh -c 'exit 7'\necho unreached\n")
        done = run(add_hook(["echo", "unreached"], shell), tmp_path)
        assert done.returncode == 7
        assert done.stdout == ""

    def test_stop_on_error_ends_with_the_hook(self, tmp_path, shell):
        (tmp_path / "startup-hook.sh").write_text("true\n")
        done = run(add_hook(["sh", "-c", "false; echo on"], shell), tmp_path)
        assert (done.returncode, done.stdout) == (0, "on\n")

    def test_a_missing_command_is_127(self, tmp_path, shell):
        (tmp_path / "startup-hook.sh").write_text("")
        assert run(add_hook(["no-such-program"], shell), tmp_path).returncode == 127


@pytest.mark.live
def test_a_hook_may_use_its_own_parameters_and_arrays(tmp_path):
    (tmp_path / "startup-hook.sh").write_text('set -- a b; list=(c d); declare -x OUT="$2${list[1]}"\n')
    done = run(add_hook(["sh", "-c", 'echo "$OUT $1"', "x", "mine"]), tmp_path)
    assert done.stdout == "bd mine\n"
