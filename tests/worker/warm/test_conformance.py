"""A warm start has the same result as a cold one: scripts run both ways, and all that is seen is compared."""

import contextlib
import re
import signal

import pytest

from tests.fixtures.tiers import others_in_full, rest_in_full
from tests.worker.warm import scripts
from tests.worker.warm.conftest import Templates
from worker.shim import life
from worker.warm.template import NoTemplate

pytestmark = pytest.mark.live

PRELOADED = ("determined", "determined.core", "numpy", "numpy.random")
TORCH = (*PRELOADED, "torch", "torch.utils.data", "torch._dynamo")
FORMS = {
    "words": ["python3", "train.py", "--rate", "0.1"],
    "shell": ["sh", "-c", "python3 -u train.py --rate 0.1"],
    "python": ["python", "./train.py"],
    "sub-folder": ["python3", "deep/er/train.py"],
    "module": ["python3", "-m", "pack.inner", "x"],
    "package": ["sh", "-c", "python3 -m pack"],
}


def comparable(result):
    """What was printed and the exit, without what is another in every process."""
    streams, ended = result
    hide = re.compile(r"0x[0-9a-f]{6,}|process [0-9]+|run-[0-9]+|pid=[0-9]+")
    return {name: [hide.sub("?", text) for text in texts] for name, texts in streams.items()}, ended


def the_same(both, argv, modules=PRELOADED, **env):
    cold, warm = comparable(both.cold(argv, **env)), comparable(both.warm(argv, modules, **env))
    for stream, lines in cold[0].items():
        for line, other in zip(lines, warm[0][stream], strict=False):
            assert other == line
    assert warm == cold
    return cold


@pytest.mark.parametrize("form", FORMS)
def test_what_a_script_finds(both, form):
    both.write(scripts.FACTS, "train.py", "deep/er/train.py", "pack/inner.py", "pack/__main__.py")
    both.write("", "pack/__init__.py")
    more = {"TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8", "PYTHONWARNINGS": "error::EncodingWarning"}
    streams, ended = the_same(both, FORMS[form], **more)
    assert ended[0] == 0, streams


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_signals_are_not_ignored_because_the_worker_ignores_them(both, handler):
    """Nor because it did when it made the template."""
    both.write(scripts.FACTS)
    before = {number: signal.signal(number, handler) for number in life.FORWARDED_SIGNALS}
    try:
        with contextlib.closing(Templates()) as both.templates:
            the_same(both, FORMS["words"], LC_ALL="C.UTF-8")
    finally:
        for number, previous_handler in before.items():
            signal.signal(number, previous_handler)


@pytest.mark.parametrize("form", ["words", "shell", "module"])
def test_stacks_show_nothing_of_ours(both, form):
    both.write(scripts.STACKS, "train.py", "pack/inner.py")
    both.write("", "pack/__init__.py")
    streams, ended = the_same(both, FORMS[form])
    assert ended[0] == 1
    assert any("ZeroDivisionError" in text for text in streams["stderr"])


WORD_ENDS_IN_FULL = [
    "exit none", "sigint", "abort", "stop", "generator", "group", "tabs", "held by sys", "collections",
]  # fmt: skip
"""Like another one: an exit, a signal, a stack, a text that is no Python, what is freed."""
SHELL_ENDS = ["nothing", "exit 3", "sigterm", "attribute", "fork", "broken pipe"]
PACKAGE_ENDS = [
    "nothing",
    "sigterm",
    "attribute",
    "left over",
    "late thread",
    "held by builtins",
    "own output",
]
"""Of each way to end: by itself, by a signal, with a stack, and with something that goes on."""


@pytest.mark.parametrize(
    ("end", "form"),
    [
        *others_in_full(
            ((end, "words") for end in scripts.ENDS),
            [(end, "words") for end in scripts.ENDS if end not in WORD_ENDS_IN_FULL],
        ),
        *others_in_full(((end, "shell") for end in scripts.ENDS), [(end, "shell") for end in SHELL_ENDS]),
    ],
)
def test_how_it_ends(both, end, form):
    both.write(scripts.ENDS[end])
    the_same(both, FORMS[form], modules=())


@pytest.mark.parametrize(
    "end", others_in_full((name for name in scripts.ENDS if "exit" not in scripts.ENDS[name]), PACKAGE_ENDS)
)
def test_how_it_ends_with_packages(both, end):
    both.write(scripts.ENDS[end])
    the_same(both, FORMS["words"])


@pytest.mark.parametrize(
    ("within", "modules"),
    [
        *((within, ()) for within in scripts.WITHIN),
        *others_in_full(
            ((within, PRELOADED) for within in scripts.WITHIN), [("a cycle in a package", PRELOADED)]
        ),
    ],
)
def test_what_it_leaves_open(both, within, modules):
    both.write(f"{scripts.LEFT}\n{scripts.WITHIN[within]}\n")
    outcomes = []
    for start in (both.cold, lambda argv: both.warm(argv, modules)):
        streams, ended = comparable(start(FORMS["words"]))
        files = {name: (both.workdir.parent / name) for name in ("own", "more")}
        texts = {name: path.read_text() for name, path in files.items() if path.exists()}
        assert set(texts.values()) == {"whole"}, (texts, streams)
        for path in files.values():
            path.unlink(missing_ok=True)
        # Python does not say in which order.
        outcomes.append(({name: sorted(lines) for name, lines in streams.items()}, ended, texts))
    assert outcomes[0] == outcomes[1]


def test_processes_of_its_own(both):
    both.write(scripts.PROCESSES)
    cold, warm = both.cold(FORMS["words"]), both.warm(FORMS["words"], PRELOADED)
    # Whether the helpers of multiprocessing are gone before the shim looks is chance, both ways.
    assert comparable(warm)[0]["stdout"] == comparable(cold)[0]["stdout"]
    assert warm[1][0] == cold[1][0] == 0


@pytest.mark.parametrize(
    "variables", [*rest_in_full([{}, {"OMP_NUM_THREADS": "1"}]), {"PYTHONHASHSEED": "7"}]
)
def test_seeded_numbers_are_the_same(both, variables):
    fixed = "PYTHONHASHSEED" in variables
    both.write(scripts.SEEDED if fixed else scripts.SEEDED.replace('hash("text")', "0"))
    the_same(both, FORMS["words"], **variables)


def test_unseeded_numbers_are_others_in_each_run(both):
    both.write(scripts.CHANCE)
    outputs = [both.warm(FORMS["words"], TORCH)[0]["stdout"] for _ in range(2)]
    assert len(outputs[0]) == 10
    assert all(len(set(lines)) == 2 for lines in zip(*outputs, strict=True)), outputs


def test_training_with_torch(both):
    pytest.importorskip("torch")
    both.write(scripts.TORCH)
    _, ended = the_same(both, FORMS["words"], TORCH)
    assert ended[0] == 0


def test_a_tool_that_watches_from_the_start_on_makes_it_cold(both, tmp_path):
    (tmp_path / "watch").mkdir()
    (tmp_path / "watch" / "sitecustomize.py").write_text("import sys; sys.settrace(lambda *a: None)")
    both.write("print(1)")
    with pytest.raises(NoTemplate, match="a tool watches"):
        both.templates.get(both.wanted(FORMS["words"], PYTHONPATH=str(tmp_path / "watch")))
