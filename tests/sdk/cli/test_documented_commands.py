"""The commands and options that the documentation names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from determined.cli import cli, grammar

ROOT = Path(__file__).parents[3]
NOT_OURS = {"commands.md", "all-of-0.25.md", "compatibility.md"}
"""Pages made from the commands, and pages that name those of 0.25, missing ones among them."""
PAGES = [
    path
    for path in (
        ROOT / "README.md",
        *sorted(ROOT.glob("docs/**/*.md")),
        *sorted(ROOT.glob("examples/*/*.md")),
    )
    if path.name not in NOT_OURS and "decisions" not in path.parts
]
COMMAND = re.compile(r"(?:`|^ *(?:\$ )?)det( [^`|;&#\n]+)", re.MULTILINE)
WITHOUT_EXAMPLES = re.compile(r'"[^"]*"|\'[^\']*\'')
"""What is quoted is a value."""


def commands_in(text):
    """The words of each command, up to those that are no more of it than an example."""
    for command in COMMAND.finditer(text):
        yield WITHOUT_EXAMPLES.sub("VALUE", command[1]).split(" -- ")[0].split()


def names_of(verb):
    items = [
        argument
        for item in verb.args
        for argument in (item.args if isinstance(item, grammar.OneOf) else [item])
    ]
    takes_rest = any(item.options.get("nargs") == "..." for item in items)
    return [name for item in items for name in item.names], takes_rest


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_command_of_a_page_exists(path):
    for line in commands_in(path.read_text()):
        # What stands before the command may be anything; `det ...` and `det -m HOST:PORT` alone name none.
        words = [word for word in cli._globals().parse_args(line).words if word != "..."]
        if not words or not words[0].islower():
            continue
        match = grammar.find(cli.ROOT, words)
        if not isinstance(match.node, grammar.Verb) or match.node.anything:
            continue
        names, takes_rest = names_of(match.node)
        for word in match.rest:
            option = word.partition("=")[0].rstrip(".,:)")
            if option.startswith("-") and option not in ("-h", "--help", "-") and not takes_rest:
                assert any(name.startswith(option) for name in names), (words, option)
