"""What nests too deep is known before anybody goes down with it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_contracts.nesting import LEVELS, is_too_deep


def nested(levels, open=b"[", close=b"]", inner=b""):
    return open * levels + inner + close * levels


@pytest.mark.parametrize(
    ("open", "close", "levels"), [(b"[", b"]", 1), (b'{"a":', b"}", 1), (b'[1,{"b":', b"}]", 2)]
)
def test_the_limit(open, close, levels):
    within = LEVELS // levels
    assert not is_too_deep(nested(within, open, close, b"1"))
    assert is_too_deep(nested(within + 1, open, close, b"1"))


def test_brackets_in_text_are_none():
    many = {"[[" + str(n): ["]", '"[', "\\", "[\\"] for n in range(500)}
    assert not is_too_deep(json.dumps(many).encode())
    assert is_too_deep(json.dumps(many).encode()[:-1] + b', "deep": ' + nested(LEVELS) + b"}")


@given(st.recursive(st.text() | st.integers(), lambda of: st.lists(of) | st.dictionaries(st.text(), of)))
def test_what_a_person_would_write_is_not_too_deep(value):
    body = json.dumps([value] * 40).encode()
    assert not is_too_deep(body)
    assert is_too_deep(nested(LEVELS, inner=body))


@pytest.mark.parametrize("text", [b'"', b'"\\', b'"a', b"[{", b"{]", b'["\\'])
def test_what_is_no_json_takes_no_longer(text):
    is_too_deep(text * 200_000 + b"[" * 200)
