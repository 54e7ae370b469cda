"""The command-line grammar: nouns, verbs and arguments as tables, and the lookup of typed words.

argparse supports neither options between the positionals of subcommands nor default verbs for nouns. So the
words up to the verb are parsed here, and argparse handles the rest (client spec, section 3).
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from determined.cli import instead
from determined.transport.rest import Session

Run = Callable[[Session, argparse.Namespace], "int | None"]


class Arg(NamedTuple):
    """One argument, with the parameters of argparse's `add_argument`."""

    names: tuple[str, ...]
    options: dict[str, Any]


class OneOf(NamedTuple):
    """Mutually exclusive options."""

    args: tuple[Arg, ...]
    required: bool = False
    """Whether one of them is required."""


class Verb(NamedTuple):
    """An action of `det`."""

    names: str
    """The name, followed by aliases, separated by blanks."""
    help: str
    """Completes "Failed to ..."."""
    run: Run
    """Performs the action; returns the exit status, or None for 0."""
    args: tuple[Arg | OneOf, ...] = ()
    login: bool = True
    """Whether the session needs a user first."""
    check: bool = True
    """Whether to check first that there is a master, and its version."""
    offline: Callable[[argparse.Namespace], bool] = lambda _: False
    """Whether it needs neither, given these arguments."""
    anything: bool = False
    """Whether it accepts any arguments."""


class Noun(NamedTuple):
    """A group of verbs."""

    names: str
    help: str
    children: tuple[Noun | Verb, ...]
    """Its verbs, or nested nouns."""
    default: str = ""
    """The verb used if none is given."""


class Match(NamedTuple):
    """The result of looking up the typed words."""

    path: str
    """The full words for messages: `det experiment create`."""
    node: Noun | Verb
    rest: list[str]
    """The remaining words, which belong to the verb."""
    help: bool
    """Whether only the help text is requested."""


class UsageError(Exception):
    """The typed words are not a command. Ends with status 2."""


def arg(*names: str, **options: Any) -> Arg:
    """Define an argument with the parameters of argparse's `add_argument`."""
    return Arg(names, options)


def one_of(*args: Arg, required: bool = False) -> OneOf:
    """Define mutually exclusive options."""
    return OneOf(args, required)


def read(path: str, verb: Verb, words: list[str]) -> argparse.Namespace:
    """Parse the words after the verb. Exits with status 2 if they are invalid."""
    made = parser(path, verb)
    # Commands that are not supported: whatever is given, they say what to use instead.
    if verb.anything:
        return made.parse_known_args(words)[0]
    if any(isinstance(item, Arg) and item.options.get("nargs") == argparse.REMAINDER for item in verb.args):
        return made.parse_args(words)
    # Allows options between positionals, which 0.25 did, too. argparse cannot do that if a positional takes
    # all the rest.
    return made.parse_intermixed_args(words)


def find(root: Noun, words: Sequence[str]) -> Match:
    """Look up the words, starting at the root. Raises `UsageError` for an unknown word."""
    node, path, rest, wants_help = root, root.names, list(words), False
    while True:
        # `help` may stand anywhere before the verb: `det help experiment`, `det experiment help`.
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
    """Return the parser for the words after the verb."""
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
    """Return the help text of a noun or verb."""
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
    if command := instead.command_for(path, word):
        return f"use {command}"
    names = [child.names.split()[0] for child in node.children]
    begun = [child for child in node.children if any(name.startswith(word) for name in child.names.split())]
    if begun:
        return f"did you mean '{path} {begun[0].names.split()[0]}'?"
    # A verb of another noun: `det activate` probably means `det experiment activate`.
    verbs = [f"'{path} {noun} {word}'" for noun in _nouns_with(node, word)]
    if verbs:
        return f"did you mean {' or '.join(verbs)}?"
    if near := difflib.get_close_matches(word, names):
        return f"did you mean '{path} {near[0]}'?"
    return "choose from " + ", ".join(names)


def _nouns_with(node: Noun, word: str) -> list[str]:
    """Return the nouns below a noun that have this verb."""
    nouns = []
    for child in node.children:
        if isinstance(child, Noun):
            name = child.names.split()[0]
            nouns += [name] if any(word in verb.names.split() for verb in child.children) else []
            nouns += [f"{name} {noun}" for noun in _nouns_with(child, word)]
    return nouns


def _sentence(help: str) -> str:
    return help[:1].upper() + help[1:] + "."
