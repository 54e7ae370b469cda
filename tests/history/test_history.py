"""Logs that earlier versions wrote are read by this one, for ever (guarantee G7).

Each file was recorded on a real cluster by `python -m tests.history.record`; none is ever edited.
"""

import json
from pathlib import Path

import pytest

from det_contracts import codec, subjects
from tests.history.facts import facts_of
from tests.history.recording import read

RECORDED = sorted(Path(__file__).parent.glob("*.jsonl.gz"))


def test_there_are_histories():
    assert RECORDED


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_a_recorded_log_means_what_it_meant(path):
    facts, streams = read(path)
    assert json.loads(json.dumps(facts_of(streams))) == facts


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_every_event_of_a_recorded_log_lies_where_it_would_lie_today(path):
    _, streams = read(path)
    for message in streams[subjects.CONTROL]:
        event = codec.decode(message.body, message.position).event
        if not message.subject.endswith(".decision"):
            assert codec.subject_of(event) == message.subject
