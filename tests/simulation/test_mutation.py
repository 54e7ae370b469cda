"""The mutants; and unchanged source is not reported as noticed."""

import subprocess
import sys

import pytest

from tests.simulation import mutation
from tests.simulation.mutants import mutants
from tests.simulation.mutation import FILES, ROOT, chosen, is_noticed

SOURCE = '''
LIMIT = 3

def rule(state, number: int = 1):
    """Says something."""
    if number < LIMIT and not state.over:
        yield "records", number
    return replace(state, over=True, count=number + 1)
'''


def test_each_mutant_changes_one_thing():
    descriptions = [mutant.what for mutant in mutants(SOURCE)]
    assert descriptions == [
        "if number < LIMIT and (not state.over): always True",
        "if number < LIMIT and (not state.over): always False",
        "and/or: number < LIMIT and (not state.over)",
        "without: yield ('records', number)",
        "compares otherwise: number < LIMIT",
        "without 'not': not state.over",
        "keeps over: replace(state, over=True, count=number + 1)",
        "keeps count: replace(state, over=True, count=number + 1)",
        "True the other way round",
        "plus/minus: number + 1",
        "1 is 2",
    ]
    sources = [mutant.source() for mutant in mutants(SOURCE)]
    assert len(set(sources)) == len(sources)
    assert all(compile(source, "mutant", "exec") for source in sources)


def test_a_sample_is_always_the_same():
    assert chosen("", 20, 1) == chosen("", 20, 1) != chosen("", 20, 2)


@pytest.mark.parametrize(
    ("program", "processor_s", "output"),
    [("import time; time.sleep(3600)", 1e9, None), ("print(input() + '!')", 0.0, b"done!\n")],
    ids=["stands still", "goes on"],
)
def test_a_mutant_that_stands_still_is_given_up_and_a_slow_one_is_not(
    monkeypatch, program, processor_s, output
):
    monkeypatch.setattr(mutation, "IDLE_S", 0.01)
    monkeypatch.setattr(mutation, "IDLE_PROCESSOR_S", processor_s)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe) as child:
        assert mutation._output_of(child, "done") == output
        child.kill()


@pytest.mark.full
def test_what_is_unchanged_survives_and_a_wrong_verdict_does_not():
    file = FILES[1]
    assert file == "searcher/verdict"
    source = (ROOT / "services" / f"{file}.py").read_text()
    assert not is_noticed(file, source, seeds=2)
    assert is_noticed(file, source.replace("trial.restarts + 1", "trial.restarts + 2"), seeds=2)
