"""What launchers make of their arguments (launchers spec, section 3)."""

import subprocess
import sys

import pytest

from determined.launch import autohorovod, deepspeed, horovod, torch_distributed

HARNESS = ["python3", "-m", "determined.exec.harness", "m:T"]


@pytest.mark.parametrize(
    ("arguments", "overrides", "script"),
    [
        ("--trial m:T", [], HARNESS),
        ("--trial=m:T", [], HARNESS),
        ("script arg", [], ["script", "arg"]),
        ("-- script arg", [], ["script", "arg"]),
        ("o1 o2 -- script arg", ["o1", "o2"], ["script", "arg"]),
        ("--max_restarts 3 -- script", ["--max_restarts", "3"], ["script"]),
        ("-- script -- arg", [], ["script", "--", "arg"]),
        ("script -- arg", ["script"], ["arg"]),
        ("script --trial", [], ["script", "--trial"]),
        ("script --autohorovod", [], ["script", "--autohorovod"]),
        ("script -h", [], ["script", "-h"]),
    ],
)
def test_torch_and_horovod(arguments, overrides, script):
    assert torch_distributed.parse_args(arguments.split()) == (overrides, script)
    assert horovod.parse_args(arguments.split()) == (overrides, script, False)


@pytest.mark.parametrize(
    ("arguments", "script"),
    [
        ("--autohorovod script", ["script"]),
        ("-- --autohorovod script -- arg", ["script", "--", "arg"]),
        ("--autohorovod --trial m:T", HARNESS),
    ],
)
def test_autohorovod(arguments, script):
    assert horovod.parse_args(arguments.split()) == ([], script, True)


@pytest.mark.parametrize(
    ("arguments", "script"),
    [
        ("--trial m:T", HARNESS),
        ("script arg", ["script", "arg"]),
        ("-- script arg", ["script", "arg"]),
        ("o1 o2 -- script arg", ["o1", "o2", "--", "script", "arg"]),
        ("--force_multi -- script -- arg", ["script", "--", "arg"]),
        ("script -- arg", ["script", "--", "arg"]),
        ("script --trial", ["script", "--trial"]),
    ],
)
def test_deepspeed(arguments, script):
    assert deepspeed.parse_args(arguments.split()) == script


@pytest.mark.parametrize("launcher", [torch_distributed, horovod, deepspeed])
@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        ("--trial m:T script", "extra arguments to --trial: script", 1),
        ("", "empty script is not allowed", 1),
        ("nowhere-train.py --lr 1", "write `python3 nowhere-train.py --lr 1`", 2),
        ("-- ./nowhere-train.py", "is not a program but a script", 2),
        ("--", "empty script is not allowed", 1),
        ("--asdf 1 script", "unrecognized arguments --asdf 1 script", 2),
        ("--trial", "expected one argument", 2),
    ],
)
def test_what_is_refused(launcher, arguments, message, code, capsys):
    with pytest.raises(SystemExit) as ended:
        launcher.parse_args(arguments.split())
    assert ended.value.code == code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("launcher", [torch_distributed, deepspeed])
def test_autohorovod_is_for_horovod(launcher):
    with pytest.raises(SystemExit):
        launcher.parse_args(["--autohorovod", "script"])


BARE = "import sys; sys.modules.update(dict.fromkeys(['torch', 'horovod', 'deepspeed', 'zmq', 'numpy'])); "


def bare(module, *arguments, **more):
    """Run a module where none of the frameworks can be imported."""
    script = (
        f"{BARE} sys.argv[1:] = {list(arguments)!r}; import runpy; "
        f"runpy.run_module({module!r}, run_name='__main__')"
    )
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, **more)


@pytest.mark.parametrize(
    "module",
    [
        *["launch.torch_distributed", "launch.horovod", "launch.deepspeed", "launch.autohorovod"],
        *["launch.wrap_rank", "launcher.wrap_rank", "exec.harness", "exec.prep_container"],
        *["exec.pid_server", "exec.pid_client"],
    ],
)
def test_help_needs_no_framework(module):
    done = bare(f"determined.{module}", "-h")
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("torch_distributed", "torchrun"),
        ("horovod", "horovodrun"),
        ("deepspeed", "deepspeed"),
        ("autohorovod", "torchrun"),
    ],
)
def test_off_cluster_one_line_says_what_to_use(name, instead, tmp_path):
    done = bare(f"determined.launch.{name}", "script", env={"PATH": "", "DET_INFO_DIR": str(tmp_path)})
    assert done.returncode == 1
    assert done.stderr == (
        f"determined.launch.{name} runs inside a trial; on your own machine use {instead}\n"
    )


def test_autohorovod_has_the_same_options():
    with pytest.raises(SystemExit):
        autohorovod.main(["--trial", "m:T", "more"])
