"""What may be typed: nouns, verbs and their arguments as tables, and how words are looked up in them.

argparse knows neither options between the positionals of sub-commands nor "this noun means that
verb", so the words up to the verb are walked here and argparse gets the rest (client spec, section 3).
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from determined.transport.rest import Session

Run = Callable[[Session, argparse.Namespace], "int | None"]


class Arg(NamedTuple):
    """One argument, as argparse's `add_argument` takes it."""

    names: tuple[str, ...]
    options: dict[str, Any]


class OneOf(NamedTuple):
    """Options that exclude each other."""

    args: tuple[Arg, ...]
    required: bool = False
    """Whether one of them must be given."""


class Verb(NamedTuple):
    """Something `det` does."""

    names: str
    """The name, then other names, blank-separated."""
    help: str
    """Completes "Failed to ..."."""
    run: Run
    """Does it; returns the exit status, None for 0."""
    args: tuple[Arg | OneOf, ...] = ()
    login: bool = True
    """Whether the session must have a user before."""
    check: bool = True
    """Whether to ask first if there is a master, and which."""
    offline: Callable[[argparse.Namespace], bool] = lambda _: False
    """Whether it needs neither, typed like this."""
    anything: bool = False
    """Whether it takes whatever is typed."""


class Noun(NamedTuple):
    """Something `det` knows verbs for."""

    names: str
    help: str
    children: tuple[Noun | Verb, ...]
    """Its verbs, or nouns below it."""
    default: str = ""
    """The verb that is meant without one."""


class Match(NamedTuple):
    """Where the typed words lead."""

    path: str
    """The words in full, for messages: `det experiment create`."""
    node: Noun | Verb
    rest: list[str]
    """Words that belong to the verb."""
    help: bool
    """Whether only its help is wanted."""


class UsageError(Exception):
    """What was typed is not a command; ends with status 2."""


def arg(*names: str, **options: Any) -> Arg:
    """One argument, written as for argparse's `add_argument`."""
    return Arg(names, options)


def one_of(*args: Arg, required: bool = False) -> OneOf:
    """Options that exclude each other."""
    return OneOf(args, required)


def read(path: str, verb: Verb, words: list[str]) -> argparse.Namespace:
    """What was typed after the verb; leaves with status 2 if it does not fit."""
    made = parser(path, verb)
    if verb.anything:
        return made.parse_known_args(words)[0]
    if any(isinstance(item, Arg) and item.options.get("nargs") == argparse.REMAINDER for item in verb.args):
        return made.parse_args(words)
    return made.parse_intermixed_args(words)


def find(root: Noun, words: Sequence[str]) -> Match:
    """Walk from the root along the words; raises `UsageError` for a word that leads nowhere."""
    node, path, rest, wants_help = root, root.names, list(words), False
    while True:
        if rest and rest[0] in ("help", "-h", "--help"):
            wants_help = True
            del rest[0]
        elif not rest or rest[0].startswith("-"):
            return _without_verb(node, path, rest, wants_help)
        else:
            child = _child(node, rest.pop(0), path)
            path = f"{path} {child.names.split()[0]}"
            if isinstance(child, Verb):
                return Match(path, child, rest, wants_help)
            node = child


def parser(path: str, verb: Verb) -> argparse.ArgumentParser:
    """The parser for what comes after the verb."""
    made = argparse.ArgumentParser(path, description=_sentence(verb.help))
    for item in verb.args:
        if isinstance(item, OneOf):
            group = made.add_mutually_exclusive_group(required=item.required)
            for argument in item.args:
                group.add_argument(*argument.names, **argument.options)
        else:
            made.add_argument(*item.names, **item.options)
    return made


def help_of(match: Match) -> str:
    """The help text of a noun or verb."""
    if isinstance(match.node, Verb):
        return parser(match.path, match.node).format_help()
    rows = [(child.names.replace(" ", ", "), child.help) for child in match.node.children]
    width = max(len(names) for names, _ in rows)
    lines = [f"  {names:{width}}  {help}" for names, help in rows]
    if match.node.default:
        lines.append(f"\nWithout a verb: {match.node.default}.")
    heading = f"usage: {match.path} [-h] COMMAND ...\n\n{_sentence(match.node.help)}\n\ncommands:\n"
    return heading + "\n".join(lines) + "\n"


def _without_verb(node: Noun, path: str, rest: list[str], wants_help: bool) -> Match:
    if wants_help or not node.default:
        if rest:
            raise UsageError(f"{path}: a command must come before '{rest[0]}'; see '{path} help'")
        return Match(path, node, [], help=True)
    return Match(f"{path} {node.default}", _child(node, node.default, path), rest, help=False)


def _child(node: Noun, word: str, path: str) -> Noun | Verb:
    for child in node.children:
        if word in child.names.split():
            return child
    raise UsageError(f"{path}: there is no command '{word}'; {_suggestion(node, word, path)}")


def _suggestion(node: Noun, word: str, path: str) -> str:
    names = [name for child in node.children for name in child.names.split()]
    near = [name for name in names if name.startswith(word)] or difflib.get_close_matches(word, names)
    if near:
        return f"did you mean '{path} {near[0]}'?"
    nouns = [child for child in node.children if isinstance(child, Noun) and _has(child, word)]
    if nouns:
        return f"did you mean '{path} {'|'.join(noun.names.split()[0] for noun in nouns)} {word}'?"
    return "choose from " + ", ".join(child.names.split()[0] for child in node.children)


def _has(noun: Noun, word: str) -> bool:
    return any(word in child.names.split() for child in noun.children)


def _sentence(help: str) -> str:
    return help[:1].upper() + help[1:] + "."
