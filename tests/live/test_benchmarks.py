"""Every benchmark works: with `--quick` it prints the table that its page shows. No figure is judged."""

import contextlib
import importlib
import itertools
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from determined.storage import transfer_process
from tests.fixtures.service_processes import start_service

ROOT = Path(__file__).parents[2]
NAMES = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py") if path.stem != "__main__")
PAGE = (ROOT / "benchmarks" / "README.md").read_text()
HEAVY = {
    "beside_peers", "charts", "cli", "launch", "launch_ranks", "log_page", "long_history", "rest_reads",
    "series_query", "shared_ingest", "trainer", "webui",
}  # fmt: skip
"""Start many interpreters, a browser, or a cluster again and again, however small they are."""
MAY_BE_NONE = re.compile(
    "Trainer adds|its memory beyond|memory of its state|lost by training|longest of the|"
    "Bare subprocesses: peak"
)
"""Differences, which chance makes negative where next to nothing is measured, what is best not there, and the
memory of what may be over between two looks."""
# pgserver asks for a folder that not every machine has, and does well without.
pytestmark = pytest.mark.filterwarnings("ignore:XDG_RUNTIME_DIR is not set")


def rows(text):
    """The rows of all tables of measures in a text: (measure, value, unit, aim), without the ratios."""
    cells = ([cell.strip() for cell in line.split("|")] for line in lines_of_tables(text))
    return [(measure, *value.split(" ", 1), aim) for _, measure, value, aim, *_ in cells]


def lines_of_tables(text):
    """The lines of the tables that benchmarks print, without their heads, and of no other table."""
    lines, measures = text.splitlines(), True
    for line, following in itertools.zip_longest(lines, lines[1:], fillvalue=""):
        if following.startswith("|---"):
            measures = line.startswith("| measure | value |")
        elif not line.startswith("|"):
            measures = True
        elif measures and line.startswith("| "):
            yield line


def sizeless(table):
    """(measure, unit, aim) of each row; the numbers in a measure are sizes, and differ."""
    return [(re.sub(r"\d[\d,.]*", "N", measure), unit, aim) for measure, _, unit, aim in table]


def documented(name):
    """What the page shows for a benchmark: the tables that its command introduces, up to that of another."""
    parts = re.split(r"`[^`\n]*python -m benchmarks\.(\w+)[^`\n]*`", PAGE)
    sections = zip(parts[1::2], parts[2::2], strict=True)
    return [row for of, text in sections if of == name for row in rows(text)]


def check(name, printed, left_out=()):
    shown = [row for row in documented(name) if row[0].partition(":")[0] not in left_out]
    assert sizeless(printed) == sizeless(shown)
    for measure, value, *_ in printed:
        figure = float(value.replace(",", ""))
        assert math.isfinite(figure), measure
        assert figure > 0 or MAY_BE_NONE.search(measure), f"{measure}: {value}"


def test_every_documented_value_is_one_figure_with_its_unit():
    # Benchmarks that only the full tier runs are compared with the page there: this part of it needs no run.
    values = [row[1] for row in rows(PAGE) if len(row) == 4]
    assert len(values) > 200
    assert [value for value in values if not re.fullmatch(r"[\d,.]+", value)] == []
    assert [row for row in rows(PAGE) if re.match(r"(to|and|-) ", row[2])] == []


@pytest.fixture
def quick(request, monkeypatch, capsys):
    """Runs a benchmark in this process, on the cluster that tests share.

    What it starts is forked. An upload has the priority of the training beside it, which keeps a core busy
    until the upload is over. Returns the rows it prints, and what it leaves out by name because it is not
    installed.
    """
    monkeypatch.setattr(transfer_process, "NICE", 0)

    def run(name):
        module = importlib.import_module(f"benchmarks.{name}")
        if lacks := module.BENCHMARK.lacks():
            pytest.skip(f"{name}: {lacks}")
        for starts, target_of in (("running_cluster", lambda it: it.home), ("user_cluster", lambda it: it)):
            if hasattr(module, starts):
                there = contextlib.nullcontext(target_of(request.getfixturevalue("cluster")))
                monkeypatch.setattr(module, starts, lambda slots, agents=1, there=there: there)
        if hasattr(module, "start_module"):
            monkeypatch.setattr(module, "start_module", start_service)
        capsys.readouterr()
        module.BENCHMARK.run(["--quick"])
        captured = capsys.readouterr()
        return rows(captured.out), re.findall(r"^(.+?) is left out: ", captured.err, re.MULTILINE)

    return run


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.full, pytest.mark.timeout(1200)] if name in HEAVY else [])
        for name in NAMES
    ],
)
def test_it_prints_its_table(name, quick):
    check(name, *quick(name))


@pytest.fixture
def together(monkeypatch, capsys):
    """Does what `python -m benchmarks` does; each benchmark is forked."""
    command = importlib.import_module("benchmarks.__main__")
    monkeypatch.setattr(command, "start_module", start_service)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["benchmarks", *words])
        capsys.readouterr()
        return command.main(), *capsys.readouterr()

    return run


def test_those_that_are_named_run_one_after_the_other(together):
    status, output, errors = together("--quick", "scheduling_pass", "fold_rate")
    assert status == 0, errors
    assert output.count("| measure |") == 1
    both = documented("scheduling_pass") + documented("fold_rate")
    assert sizeless(rows(output)) == sizeless(both)


def test_what_cannot_run_here_is_left_out_by_name(together, monkeypatch):
    monkeypatch.setenv("PATH", "")
    status, output, errors = together("--quick", "log_page", "fold_rate")
    assert status == 0, errors
    assert "log_page is left out: " in errors
    assert sizeless(rows(output)) == sizeless(documented("fold_rate"))


def test_what_fails_is_named_and_the_others_run(tmp_path):
    """With the command itself, whose processes are interpreters."""
    (tmp_path / "optuna.py").write_text("import no_such_package")
    command = [sys.executable, "-m", "benchmarks", "--quick", "search_methods", "fold_rate"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "No module named 'no_such_package'" in done.stderr
    assert done.stderr.endswith("failed: search_methods\n")
    others = sizeless(documented("fold_rate"))
    assert sizeless(rows(done.stdout))[-len(others) :] == others


def test_all_are_listed():
    assert sorted(importlib.import_module("benchmarks.__main__").NAMES) == NAMES


@pytest.mark.parametrize("name", sorted(HEAVY))
def test_those_that_run_in_full_find_what_they_import(name):
    made = importlib.import_module(f"benchmarks.{name}").BENCHMARK
    assert made.size(["--quick"]) == made.quick != made.full


def test_sizes_can_be_given():
    made = importlib.import_module("benchmarks.checkpoints").BENCHMARK
    assert made.size([]) == made.full
    assert made.size(["--quick"]) == made.quick
    assert (made.size(["7"]).megabytes, made.size(["7"]).files) == (7, made.full.files)
    assert made.size(["7", "8", "--quick"]).files == 8
    assert made.size(["7", "--quick"]).rounds == made.quick.rounds
