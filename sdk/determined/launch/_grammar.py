"""What the launchers understand of a command line (launchers spec, section 3).

Split by hand: every `--` of the user's own command has to survive, which argument parsers do not promise.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

HELP = ("-h", "--help")
HARNESS = ("python3", "-m", "determined.exec.harness")


class Command(NamedTuple):
    """What stands after the launcher's own options."""

    script: list[str]
    autohorovod: bool = False


def cut(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """What stands before the first `--` and what stands after it; without one, all stands after it."""
    words = list(args)
    if "--" not in words:
        return [], words
    at = words.index("--")
    return words[:at], words[at + 1 :]


def command(args: Sequence[str], usage: str, *, autohorovod: bool = False) -> Command:
    """The options before the first positional argument, and the script from there on.

    Ends the program with 1 for a script that is missing or too much, with 2 for an unknown option.
    """
    words, trial, auto = list(args), None, False
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word in HELP:
            print(usage)
            raise SystemExit(0)
        if word == "--autohorovod" and autohorovod:
            auto = True
        elif word.startswith("--trial="):
            trial = word.partition("=")[2]
        elif word == "--trial" and words:
            trial = words.pop(0)
        elif word == "--trial":
            refuse("argument --trial: expected one argument", usage, code=2)
        else:
            refuse(f"unrecognized arguments {' '.join([word, *words])}", usage, code=2)
    if trial is not None:
        if words:
            refuse(f"extra arguments to --trial: {' '.join(words)}", usage)
        return Command([*HARNESS, trial], auto)
    if not words:
        refuse("empty script is not allowed", usage)
    if words[0].endswith(".py") and shutil.which(words[0]) is None:
        message = f"'{words[0]}' is no program, it is read by one: write `python3 {' '.join(words)}`"
        refuse(message, usage, code=2)
    return Command(words, auto)


def without_separator(args: Sequence[str]) -> list[str]:
    """A command without the one `--` that may stand before it."""
    words = list(args)
    return words[1:] if words[:1] == ["--"] else words


def refuse(message: str, usage: str, *, code: int = 1) -> NoReturn:
    """Say what is wrong with the arguments and end the program."""
    print(usage, file=sys.stderr)
    print(f"error: {message}", file=sys.stderr)
    raise SystemExit(code)
