"""Forms of an entrypoint, and the hook before it."""

import subprocess

import pytest

from worker.entrypoint import BadEntrypoint, command, with_hook


@pytest.mark.parametrize("slots", [0, 1, 4])
def test_a_string_goes_to_the_shell(slots):
    assert command(" FOO=1 python3 train.py && echo $X ", slots=slots)[:2] == ["sh", "-c"]


def test_a_list_is_run_as_it_is():
    argv = ["python3", "a b.py", "--", "it's", "$HOME", "m:T"]
    assert command(argv, slots=1) == argv


def test_a_list_that_looks_like_a_class_is_no_class():
    assert command(["model_def:Trial"], slots=1) == ["model_def:Trial"]


@pytest.mark.parametrize("name", ["mod:Outer.Inner", "my-mod:Cls", "a:b c", "http://x:y"])
def test_what_is_no_class_goes_to_the_shell(name):
    assert command(name, slots=1) == ["sh", "-c", name]


@pytest.mark.parametrize("slots", [0, 1])
def test_a_class_on_one_slot_is_trained_directly(slots):
    assert command("pkg.mod:Cls", slots=slots) == ["python3", "-m", "determined.exec.harness", "pkg.mod:Cls"]


@pytest.mark.parametrize(("slots", "nodes"), [(2, 1), (1, 2)])
def test_a_class_on_more_gets_a_launcher(slots, nodes):
    assert command("m:T", slots=slots, nodes=nodes) == [
        "python3",
        "-m",
        "determined.launch.torch_distributed",
        "--trial",
        "m:T",
    ]


@pytest.mark.parametrize("wrong", [None, 3, [], ["a", 1], {"a": 1}])
def test_anything_else_is_refused(wrong):
    with pytest.raises(BadEntrypoint, match="invalid entrypoint in experiment config"):
        command(wrong, slots=1)


def run(argv, cwd):
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.live
@pytest.mark.parametrize("shell", ["bash", "sh"])
class TestHook:
    def test_its_exports_reach_the_command_and_its_lines_are_shown(self, tmp_path, shell):
        (tmp_path / "startup-hook.sh").write_text("export GREETING='good morning'\n")
        done = run(with_hook(["sh", "-c", 'echo "$GREETING, $1"', "x", "it's $5"], shell), tmp_path)
        assert done.stdout == "good morning, it's $5\n"
        assert "export" in done.stderr
        assert "echo" not in done.stderr

    def test_a_failing_line_ends_the_task(self, tmp_path, shell):
        (tmp_path / "startup-hook.sh").write_text("sh -c 'exit 7'\necho unreached\n")
        done = run(with_hook(["echo", "unreached"], shell), tmp_path)
        assert done.returncode == 7
        assert done.stdout == ""

    def test_stop_on_error_ends_with_the_hook(self, tmp_path, shell):
        (tmp_path / "startup-hook.sh").write_text("true\n")
        done = run(with_hook(["sh", "-c", "false; echo on"], shell), tmp_path)
        assert (done.returncode, done.stdout) == (0, "on\n")

    def test_a_missing_command_is_127(self, tmp_path, shell):
        (tmp_path / "startup-hook.sh").write_text("")
        assert run(with_hook(["no-such-program"], shell), tmp_path).returncode == 127


@pytest.mark.live
def test_a_hook_may_use_its_own_parameters_and_arrays(tmp_path):
    (tmp_path / "startup-hook.sh").write_text('set -- a b; list=(c d); declare -x OUT="$2${list[1]}"\n')
    done = run(with_hook(["sh", "-c", 'echo "$OUT $1"', "x", "mine"]), tmp_path)
    assert done.stdout == "bd mine\n"
