"""Command-line parsing for the launchers (launchers spec, section 3).

Split by hand, because every `--` in the user's own command must survive, which argument parsers do not
guarantee.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

HELP = ("-h", "--help")
HARNESS = ("python3", "-m", "determined.exec.harness")


class Command(NamedTuple):
    """The command line after the launcher's own options."""

    script: list[str]
    autohorovod: bool = False


def cut(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words before and after the first `--`. Without one, all words come after."""
    words = list(args)
    if "--" not in words:
        return [], words
    at = words.index("--")
    return words[:at], words[at + 1 :]


def command(args: Sequence[str], usage: str, *, autohorovod: bool = False) -> Command:
    """Parse the options before the first positional argument, and the script from there on.

    Exits with 1 if the script is missing or superfluous, and with 2 for an unknown option.
    """
    words, trial, auto = list(args), None, False
    # Options end at the first word that is none: those of the script may have the same names.
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
    # A common mistake, for which the error of the operating system helps nobody.
    if words[0].endswith(".py") and shutil.which(words[0]) is None:
        message = f"'{words[0]}' is not a program but a script: write `python3 {' '.join(words)}`"
        refuse(message, usage, code=2)
    return Command(words, auto)


def without_separator(args: Sequence[str]) -> list[str]:
    """Return a command without the single `--` that may precede it."""
    words = list(args)
    return words[1:] if words[:1] == ["--"] else words


def refuse(message: str, usage: str, *, code: int = 1) -> NoReturn:
    """Print what is wrong with the arguments and exit."""
    print(usage, file=sys.stderr)
    print(f"error: {message}", file=sys.stderr)
    raise SystemExit(code)
