"""What the pages show is so: excerpts, commands and configurations are those of this version."""

import argparse
import re
import shlex
import textwrap
from pathlib import Path

import pytest
import yaml

from det_contracts import expconf
from det_contracts.expconf.experiment import EXPERIMENT
from det_contracts.expconf.meanings import MEANINGS
from determined.cli.cli import ROOT as DET
from determined.cli.grammar import Verb, find, read
from docs.site_builder import commands as commands_reference
from docs.site_builder import settings
from docs.site_builder.configuration import meaning, rows

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
BLOCK = re.compile(r"^( *)```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


def blocks(language):
    """(page, file that the block is an excerpt of, text) of each block of code in one language."""
    for page in PAGES:
        for match in BLOCK.finditer(page.read_text()):
            if match[2] == language:
                yield page.relative_to(ROOT).as_posix(), match[3], textwrap.dedent(match[4])


def of(language, where=lambda file: True):
    code_blocks = [block for block in blocks(language) if where(block[1])]
    assert code_blocks, f"no page shows {language}"
    return [pytest.param(*block, id=f"{block[0]}-{number}") for number, block in enumerate(code_blocks)]


def commands(text):
    """The `det` commands of a block for the shell, as words, without what follows in a pipe or list."""
    for line in text.replace("\\\n", " ").split("\n"):
        for part in re.split(r"[;|&>]+", line.split(" #")[0]):
            if part.strip().startswith("det "):
                yield part.strip()


DET_COMMANDS = sorted({(page, command) for page, _, text in blocks("sh") for command in commands(text)})


def typed(command):
    """The words after `det` and its own options, with numbers and names in place of `ID` and `<uuid>`."""
    words = [re.sub(r"^(ID|N|EXPERIMENT)$", "1", word) for word in shlex.split(command)[1:]]
    while words and words[0] in ("-m", "-u"):
        del words[:2]
    return words


def test_excerpts_are_what_the_files_hold():
    shown = [block for language in ("python", "yaml") for block in blocks(language) if block[1]]
    assert len(shown) > 30
    wrong = [
        f"{page}: {file}" for page, file, text in shown if not is_excerpt(text, (ROOT / file).read_text())
    ]
    assert wrong == []


def is_excerpt(text, whole):
    """Whether the lines follow one another in the file, however far they are indented there."""
    lines, wanted = whole.split("\n"), text.rstrip("\n").split("\n")
    return any(
        textwrap.dedent("\n".join(lines[at : at + len(wanted)])) == "\n".join(wanted)
        for at in range(len(lines))
    )


def test_commands_are_there_with_their_options():
    assert len(DET_COMMANDS) > 40
    refused = []
    for page, command in DET_COMMANDS:
        try:
            match = find(DET, typed(command))
            assert match.help or isinstance(match.node, Verb), f"{match.path} needs a verb"
            if isinstance(match.node, Verb):
                read(match.path, match.node, match.rest)
        except (Exception, SystemExit) as error:
            refused.append(f"{page}: {command}: {error}")
    assert refused == []


def test_options_that_only_old_scripts_give_are_not_shown():
    assert argparse.SUPPRESS not in commands_reference.page()


def configurations():
    """(page, configuration) of each block that is one, or a part of one."""
    for page, file, text in blocks("yaml"):
        shown = None if file else yaml.safe_load(text)
        if isinstance(shown, dict) and shown.keys() <= EXPERIMENT.fields.keys():
            yield page, shown


@pytest.mark.parametrize(("page", "shown"), list(configurations()))
def test_configurations_are_accepted(page, shown):
    expconf.sanity_check(shown)
    if {"name", "entrypoint", "searcher"} <= shown.keys():
        storage = {"checkpoint_storage": {"type": "shared_fs", "host_path": "/tmp"}}
        expconf.complete(shown, defaults=[storage], seed=0, name="")


@pytest.mark.parametrize(("page", "file", "text"), of("python", lambda file: not file))
def test_python_is_python(page, file, text):
    compile(text, page, "exec")


def test_every_field_of_the_configuration_has_its_meaning():
    meanings = {meaning(row.path, row.branch) for row in rows(EXPERIMENT)}
    assert all(text.endswith((".", ")")) for text in meanings)
    assert meanings == set(MEANINGS.values())


def test_every_setting_has_its_meaning():
    own = [
        (record, field.name)
        for _, _, record, base in settings.SECTIONS
        for field in settings.own_fields(record, base)
    ]
    assert len(own) > 80
    assert [name for record, name in own if not settings.meaning(record, name)] == []
