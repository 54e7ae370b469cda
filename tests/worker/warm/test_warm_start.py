"""Which commands may start warm, and what two of them must have in common."""

import pytest

from worker.warm import variables
from worker.warm.shadows import importable, modules_beside
from worker.warm.warm_start import ColdStart, WarmStart, is_switched_off, plan_start, reported_names

ENV = {"PATH": "/usr/bin", "HOME": "/root", "PYTHONUNBUFFERED": "1", "DET_TRIAL_ID": "7", "C10D_PORT": "1"}


@pytest.fixture
def code(tmp_path):
    folder = tmp_path / "run" / "workdir"
    (folder / "src").mkdir(parents=True)
    for name in ("train.py", "src/train.py", "train", "with space.py"):
        (folder / name).write_text("")
    return folder


def plan(code, *argv, user="ann", **env):
    return plan_start(argv, ENV | env, code, user)


@pytest.mark.parametrize(
    ("argv", "words", "main", "arguments"),
    [
        (["python3", "train.py"], ("python3",), "train.py", ()),
        (["python", "-u", "./train.py", "-x", "a b"], ("python", "-u"), "./train.py", ("-x", "a b")),
        (["python3", "-m", "pack.inner", "--x=1"], ("python3",), "pack.inner", ("--x=1",)),
        (
            ["sh", "-c", "python3  src/train.py --lr 0.1"],
            ("sh", "-c", "python3"),
            "src/train.py",
            ("--lr", "0.1"),
        ),
        (["sh", "-c", "python3 -u -m pack"], ("sh", "-c", "python3", "-u"), "pack", ()),
    ],
)
def test_a_script_or_module_of_pythons(code, argv, words, main, arguments):
    warm_plan = plan(code, *argv)
    assert (warm_plan.key.words, warm_plan.main, warm_plan.arguments) == (words, main, arguments)
    whole = argv[2].split() if argv[0] == "sh" else argv
    assert warm_plan.words == whole
    assert warm_plan.key.command("-m", "x")[-1].endswith("x")


@pytest.mark.parametrize(
    "argv",
    [
        ["sh", "-c", "python3 train.py; echo done"],
        ["sh", "-c", "python3 train.py $LR"],
        ["sh", "-c", "LR=1 python3 train.py"],
        ["sh", "-c", "python3 'with space.py'"],
        ["sh", "-c", "python3 train.py > log"],
        ["bash", "-c", "set -ex; source ./startup-hook.sh", "hook", "python3", "train.py"],
        ["python3", "-O", "train.py"],
        ["python3", "-c", "pass"],
        ["python3", "-"],
        ["python3"],
        ["python3", "-m"],
        ["python3", "train"],
        ["python3", "missing.py"],
        ["python3", "src/../train.py"],
        ["python3.11", "train.py"],
        ["torchrun", "train.py"],
        [],
    ],
)
def test_all_else_starts_cold(code, argv):
    assert isinstance(plan(code, *argv), ColdStart)


@pytest.mark.parametrize(
    ("name", "value"),
    [("PYTHONSAFEPATH", "1"), ("PYTHONPATH", "src"), ("PYTHONPATH", "/a::/b"), ("PYTHONDEVMODE", "1")],
)
def test_what_changes_how_python_starts(code, name, value):
    assert name in plan(code, "python3", "train.py", **{name: value}).reason


def test_a_variable_with_a_folder_of_the_run(code):
    assert "TMPDIR" in plan(code, "python3", "train.py", TMPDIR=str(code.parent / "tmp")).reason


def test_one_template_serves_the_same_user_and_environment_only(code):
    same = plan(code, "python3", "train.py")
    assert plan(code, "python3", "src/train.py", DET_TRIAL_ID="8", C10D_PORT="2").key == same.key
    others = [
        plan(code, "python3", "train.py", user="bob"),
        plan(code, "python", "train.py"),
        plan(code, "python3", "-u", "train.py"),
        plan(code, "sh", "-c", "python3 train.py"),
        plan(code, "python3", "train.py", OMP_NUM_THREADS="1"),
        plan(code, "python3", "train.py", PYTHONHASHSEED="1"),
    ]
    assert len({same.key, *(other.key for other in others)}) == 1 + len(others)


def test_a_template_is_given_no_secret(code):
    warm_plan = plan(code, "python3", "train.py", WANDB_API_KEY="geheim", DET_SESSION_TOKEN="auch")
    assert not {"geheim", "auch"} & set(dict(warm_plan.key.env).values())
    assert {"WANDB_API_KEY", "DET_SESSION_TOKEN", "DET_TRIAL_ID"} <= set(warm_plan.names)


def test_what_the_code_has_of_its_own(code):
    for name in (
        "lib/yaml.py",
        "lib/pack/__init__.py",
        "lib/pack/random.py",
        "numpy.cpython-311-x86_64-linux-gnu.so",
    ):
        (code / name).parent.mkdir(parents=True, exist_ok=True)
        (code / name).write_text("")
    assert importable(code) == {"train", "with space", "yaml", "pack", "numpy"}
    assert modules_beside(code / "lib" / "pack" / "run.py") == {"__init__", "random"}
    assert {"yaml", "numpy"} <= plan(code, "python3", "train.py").importable


def test_too_much_to_look_through(code):
    for number in range(5001):
        (code / f"{number}.txt").touch()
    assert importable(code) is None
    assert isinstance(plan(code, "python3", "train.py"), ColdStart)


def test_links_that_lead_in_a_circle(code):
    (code / "again").symlink_to(code)
    assert isinstance(plan(code, "python3", "train.py"), WarmStart)


def test_what_a_script_says_it_held_may_be_anything():
    report = (
        b"numpy\nnumpy.random\n../../etc\nos; import x\n\xff\xfe\n"
        + b"a" * 5000
        + b"\nnumpy\n"
        + b"x\n" * 30_000
    )
    assert reported_names(report) == ["numpy", "numpy.random", "x"]


@pytest.mark.parametrize(
    ("config", "off"),
    [
        ({}, False),
        ({"environment": None}, False),
        ({"environment": {"warm": True}}, False),
        ({"environment": {"warm": False}}, True),
    ],
)
def test_switched_off_by_the_configuration(config, off):
    assert is_switched_off(config) is off


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("os.environ['ONE'] = '1'", {"ONE"}),
        ('os . environ [ "ONE" ]="1"', {"ONE"}),
        ("environ['ONE'] += ':more'; os.environb[b'TWO'] = b'2'", {"ONE", "TWO"}),
        ("os.environ['ONE'], os.environ['TWO'] = '12'", {"ONE", "TWO"}),
        ("os.environ['ONE'] = os.environ['TWO'] = '12'", {"ONE", "TWO"}),
        ("if x: os.environ['ONE'] = '1'\nelse: del os.environ['TWO']", {"ONE", "TWO"}),
        ("os.environ.setdefault('ONE', '1')", {"ONE"}),
        ("print(os.environ.pop('ONE'), os.environ.pop(\n    'TWO', None))", {"ONE", "TWO"}),
        ("os.putenv('ONE', '1')\nos.unsetenv('TWO')", {"ONE", "TWO"}),
        ("os.environ.get('ONE'), os.environ['TWO'], 'X' in os.environ, os.getenv('Y')", set()),
        ("if os.environ['ONE'] == '1': f(os.environ['TWO'], key=os.environ[name])", set()),
        ("subprocess.run(x, env=os.environ)\nrun(env={**os.environ, 'A': 'b'})", set()),
        ("run(env=os.environ | {'A': 'b'})\nenv = dict(os.environ)\nenv = os.environ.copy()", set()),
        ("from os import environ\nfor name in environ:\n    print(name, os.environ.items())", set()),
        ("environment = environment_of('environ')", set()),
        ("os.environ[name] = '1'", None),
        ("os.environ[f(['a'][0])] = '1'", None),
        ("os.environ.update(ONE='1')", None),
        ("os.environ |= {'ONE': '1'}", None),
        ("os.environ.setdefault(name, '1')", None),
        ("env = os.environ\nenv['ONE'] = '1'", None),
        ("from os import environ as env", None),
        ("(put := os.putenv)('ONE', '1')", None),
        ("with mock.patch.dict(os.environ, ONE='1'): import x", None),
        ("import dotenv", None),
    ],
)
def test_the_variables_that_code_sets(tmp_path, text, names):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "train.py").write_text(f"import os\n{text}\n")
    (tmp_path / "notes.txt").write_text("os.environ['OTHER'] = '1'")
    assert variables.set_by_code(tmp_path) == (None if names is None else frozenset(names))


def test_code_that_is_too_large_to_look_through(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text("x = 1")
    monkeypatch.setattr(variables, "MAX_BYTES", 5)
    assert variables.set_by_code(tmp_path) == frozenset()
    monkeypatch.setattr(variables, "MAX_BYTES", 4)
    assert variables.set_by_code(tmp_path) is None
    monkeypatch.undo()
    monkeypatch.setattr(variables, "MAX_ENTRIES", 0)
    assert variables.set_by_code(tmp_path) is None
    monkeypatch.undo()
    (tmp_path / "train.py").write_text("environ " * variables.MAX_MENTIONS)
    assert variables.set_by_code(tmp_path) == frozenset()
    (tmp_path / "train.py").write_text("environ " * (variables.MAX_MENTIONS + 1))
    assert variables.set_by_code(tmp_path) is None


def test_a_template_is_shared_by_code_that_sets_the_same_variables(code):
    first = plan(code, "python3", "train.py")
    (code / "train.py").write_text("import os\nos.environ['KERAS_BACKEND'] = 'torch'")
    second = plan(code, "python3", "train.py")
    assert (first.key.set_by_code, second.key.set_by_code) == ((), ("KERAS_BACKEND",))
    assert set(second.names) - set(first.names) == {"KERAS_BACKEND"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("os.environ['OMP_NUM_THREADS'] = '1'", "OMP_NUM_THREADS"),
        ("os.environ[name] = '1'", "without showing which"),
    ],
)
def test_code_that_sets_what_a_template_cannot_hear_of_starts_cold(code, text, why):
    (code / "src" / "own.py").write_text(f"import os\n{text}\n")
    assert why in plan(code, "python3", "train.py").reason
