"""Checks names that people see: whoever reads one must be able to tell it from another.

Two names that look alike let one user pass work off as another's. Invisible characters and piles of accents
are refused in all names; in those of users and groups also what makes letters of two scripts look the same.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from det_contracts.problems import invalid

_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0]")
"""Characters that Python takes for printable, and that show nothing."""
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""They choose a form of the character before them, such as an emoji's; behind a letter they show nothing."""
_ACCENTS = 3
"""Accents on one letter that languages need; more cover the lines above and below."""
_ALIKE = dict(
    zip(
        "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0455\u0456\u0458\u0501\u051b\u051d\u04bb"
        "\u03b1\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7",
        "abekmhopctyxsijdqwhaikvoptux",
        strict=True,
    )
)
"""Small letters of Cyrillic and Greek by the Latin ones that they look like."""
_SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")
"""Scripts of which each has letters that look like those of another."""


def name_problem(name: str, most: int) -> str:
    """Return what is wrong with a name; empty if nothing is.

    Args:
        name: The name of anything that users name.
        most: Maximum number of characters.

    >>> name_problem("team 7", 80)
    ''
    >>> name_problem("team\\u3164", 80)
    "it has an invisible character, '\\\\u3164'"
    """
    if not name.strip():
        return "it is empty"
    if len(name) > most:
        return f"it has {len(name)} characters, and may have at most {most}"
    if name != name.strip():
        return "it begins or ends with a space"
    hidden = next((char for char in name if not char.isprintable() or _INVISIBLE.match(char)), "")
    if hidden:
        return f"it has an invisible character, {hidden!a}"
    return _problem_of_marks(name)


def identity_problem(name: str, most: int) -> str:
    """The same for the name of a user or group, which must not be taken for another one's.

    >>> identity_problem("\\u0430nn", 80)
    "it mixes letters of Cyrillic and Latin, which look alike"
    """
    if problem := name_problem(name, most):
        return problem
    if name != unicodedata.normalize("NFKC", name):
        return "it has characters that are forms of others, such as letters of full width"
    scripts = {script for char in name if (script := _script(char))}
    if len(scripts) > 1:
        return f"it mixes letters of {' and '.join(sorted(scripts))}, which look alike"
    return ""


def latin_look(name: str) -> str:
    """Return the name in Latin letters that a name in Cyrillic or Greek looks like.

    >>> latin_look("\\u0441\\u043e\\u0440")
    'cop'
    """
    return "".join(_ALIKE.get(char, char) for char in name.lower())


def check_name(
    what: str, name: str, most: int, find_problem: Callable[[str, int], str] = name_problem
) -> None:
    """Raise `Refused` (400) if something has no proper name; `what` is it, such as "a group"."""
    if problem := find_problem(name, most):
        raise invalid(f"{what} needs a name, and {name[:most]!r} is not a valid one: {problem}")


def _problem_of_marks(name: str) -> str:
    before, accents = "", 0
    for char in unicodedata.normalize("NFC", name):
        if _SELECTORS.match(char) and not unicodedata.category(before or "a").startswith("S"):
            return f"it has an invisible character, {char!a}"
        accents = accents + 1 if unicodedata.category(char) in ("Mn", "Me") else 0
        if accents > _ACCENTS:
            return f"it has more than {_ACCENTS} accents on one letter"
        before = char
    return ""


def _script(char: str) -> str:
    if not char.isalpha():
        return ""
    script = unicodedata.name(char, "").partition(" ")[0]
    return script.capitalize() if script in _SCRIPTS else ""
