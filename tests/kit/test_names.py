"""Names that look like others, or like nothing."""

import pytest

from services.kit.names import identity_problem, latin_look, name_problem

GOOD = [
    "team 7",
    "Jos\u00e9",
    "\u65e5\u672c\u8a9e team",
    "\u041f\u0451\u0442\u0440",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "\u05e9\u05dc\u05d5\u05dd",
    "<b>&\"'/..",
]
HIDDEN = {
    "nothing": "",
    "spaces": "   ",
    "a space before": " ann",
    "a space behind": "ann ",
    "Hangul filler": "ann\u3164",
    "braille blank": "ann\u2800",
    "joiner": "ann\u034f",
    "zero width": "a\u200dnn",
    "soft hyphen": "a\u00adnn",
    "right to left": "\u202enna",
    "isolate": "\u2066ann",
    "variation of a letter": "ann\ufe0f",
    "another space": "a\u00a0nn",
    "a tag": "ann\U000e0041",
    "a line": "a\nnn",
    "escape": "\x1b[2Jann",
    "nul": "a\0nn",
    "surrogate": "ann\ud800",
    "a pile of accents": "ann" + "\u0301" * 6,
}


@pytest.mark.parametrize("name", GOOD)
def test_names_of_all_languages_are_good(name):
    assert name_problem(name, 80) == identity_problem(name, 80) == ""


@pytest.mark.parametrize("what", HIDDEN)
def test_what_cannot_be_seen_is_in_no_name(what):
    assert name_problem(HIDDEN[what], 80)
    assert identity_problem(HIDDEN[what], 80)


def test_names_have_a_length():
    assert name_problem("x" * 80, 80) == ""
    assert name_problem("x" * 81, 80) == "it has 81 characters, and may have at most 80"


def test_an_accent_of_its_own_may_be_in_names_of_work():
    assert name_problem("Jose\u0301", 80) == ""
    assert identity_problem("Jose\u0301", 80)


def test_emojis_keep_their_forms():
    assert name_problem("team \u2764\ufe0f", 80) == ""


@pytest.mark.parametrize("name", ["\u0430dmin", "\u03bfk", "\uff41nn", "\u2460", "\u2126"])
def test_what_looks_like_others_is_no_users_name_but_may_name_work(name):
    assert name_problem(name, 80) == ""
    assert identity_problem(name, 80)


def test_whole_names_of_another_script_look_like_latin_ones():
    assert latin_look("\u0441\u043e\u0440") == "cop"
    assert latin_look("\u0430\u0501\u043cin") == "admin"
