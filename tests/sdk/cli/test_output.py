from __future__ import annotations

import builtins
import contextlib
import io
import json
import re

import pytest

from determined.cli import formatting, output, trial_logs
from determined.cli.failure import Failure

PLAIN = """\
 ID | Name  | State
----+-------+--------
  9 | a     | ACTIVE
 10 | bcdef |
 11 |       | PAUSED"""


def test_a_plain_table():
    rows = [[9, "a", "ACTIVE"], [10, "bcdef", None], [11, "", "PAUSED"]]
    assert output.plain_table(["ID", "Name", "State"], rows) == PLAIN


def test_a_plain_table_without_rows():
    assert output.plain_table(["ID", "Name"], []) == " ID | Name\n----+------"


def test_a_cell_stays_on_its_line():
    assert output.plain_table(["A"], [["x\ny"]]).splitlines()[-1] == " x y"


@pytest.mark.parametrize(
    ("text", "shown"),
    {
        "\x1b[2J\x1b]0;owned\x07": "\\x1b[2J\\x1b]0;owned\\x07",
        "a\r\x9b2Jb": "a\\r\\x9b2Jb",
        "\u202egnp.exe": "\\u202egnp.exe",
        "a\0": "a\\x00",
        "größer \u6c34 \U0001f389": "größer \u6c34 \U0001f389",
    }.items(),
)
def test_words_of_others_command_no_terminal(capsys, text, shown):
    assert output.plain_table(["A"], [[text]]).splitlines()[-1] == f" {shown}"
    output.complain(text)
    assert capsys.readouterr().err == f"{shown}\n"


HOSTILE = "\x1b]0;mine\x07\x1b[2J\x1b[6n\x9b2J\u202e"
ESCAPED = r"\x1b]0;mine\x07\x1b[2J\x1b[6n\x9b2J\u202e"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def printed_on_a_terminal(show):
    with contextlib.redirect_stdout(Terminal()) as terminal:
        show()
    return terminal.getvalue()


def show_log(text):
    trial_logs.show_line({"message": text + "\n"}, flush=True)


def test_logs_command_no_terminal_and_keep_their_colours(capsys):
    text = "\x1b[1;38:5:9m\tred\x1b[0m"
    assert printed_on_a_terminal(lambda: show_log(text + HOSTILE)) == f"{text}{ESCAPED}\n"
    show_log(text + HOSTILE)
    assert capsys.readouterr().out == f"{text}{HOSTILE}\n"


@pytest.mark.parametrize(
    "show",
    [
        lambda: output.table(["A"], [[HOSTILE]], as_csv=True),
        lambda: output.table(["A"], [[HOSTILE]]),
        lambda: output.print_json({"a": HOSTILE}),
        lambda: output.print_yaml({"a": HOSTILE}),
    ],
    ids=["csv", "table", "json", "yaml"],
)
def test_no_form_of_output_commands_a_terminal(monkeypatch, show):
    monkeypatch.setenv("DET_CLI_COLORIZE", "1")
    shown = printed_on_a_terminal(show)
    assert "mine" in shown
    # A highlighted JSON has colours, which are no part of the text.
    assert not set(re.sub("\x1b\\[[0-9;]*m", "", shown)) & {"\x1b", "\x07", "\x9b", "\u202e"}


def test_csv_in_pipes_has_texts_as_they_are(capsys):
    output.table(["A"], [[f"a{HOSTILE}"]], as_csv=True)
    assert capsys.readouterr().out == f"A\na{HOSTILE}\n"


def test_csv(capsys):
    output.table(["A", "B"], [[1, 'say "x", y'], [None, True]], as_csv=True)
    assert capsys.readouterr().out == 'A,B\n1,"say ""x"", y"\n,True\n'
    output.table(["A"], [["=cmd()"], [-1], ["-0.5"]], as_csv=True)
    assert capsys.readouterr().out == "A\n'=cmd()\n-1\n-0.5\n"


def test_json_is_sorted_and_plain_in_pipes(capsys, monkeypatch):
    monkeypatch.setenv("DET_CLI_COLORIZE", "1")
    output.print_json({"b": [1], "a": "ä"})
    shown = capsys.readouterr().out
    assert shown.startswith('{\n  "a": ')
    assert json.loads(shown) == {"a": "ä", "b": [1]}


def test_lines_have_no_colours_in_pipes(capsys):
    output.good("good")
    output.warn("warned")
    output.complain("bad")
    assert capsys.readouterr() == ("good\n", "warned\nbad\n")


@pytest.mark.parametrize(("typed", "expected"), [("y", True), ("Yes", True), ("n", False), ("", False)])
def test_confirm_reads_the_answer(monkeypatch, typed, expected):
    monkeypatch.setattr(builtins, "input", lambda: typed)
    assert output.confirm("Sure?") is expected


def leave(error):
    def run():
        raise error

    return run


def test_leaving_a_question_means_no(monkeypatch):
    monkeypatch.setattr(builtins, "input", leave(KeyboardInterrupt))
    assert output.confirm("Sure?") is False


def test_a_question_that_nobody_can_answer_is_a_failure(monkeypatch):
    """As with 0.25, where a script forgot --yes: it must not go on as if all was done."""
    monkeypatch.setattr(builtins, "input", leave(EOFError))
    with pytest.raises(Failure, match=r"there is no answer.*--yes"):
        output.confirm("Sure?")


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0.0B"),
        (1023, "1023.0B"),
        (1024, "1.0KB"),
        (8806, "8.6KB"),
        (3 * 1024**2, "3.0MB"),
        (2**50, "1024.0TB"),
    ],
)
def test_sizes(count, text):
    assert formatting.size(count) == text


def test_values_in_tables():
    assert formatting.when("2023-08-01T12:00:00.123456789Z") == "2023-08-01 12:00:00+0000"
    assert formatting.when(None) is None
    assert formatting.percent(0.4321) == "43.2%"
    assert formatting.percent(None) is None
    assert formatting.state("STATE_STOPPING_KILLED") == "STOPPING_KILLED"
    assert formatting.compact({"b": 1, "a": [2]}) == '{"a": [2], "b": 1}'
    assert formatting.compact({}) is None
    assert formatting.listed(["a", "b"]) == "a, b"
    assert formatting.listed(None) == ""
