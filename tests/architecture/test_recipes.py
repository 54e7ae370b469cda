"""The recipes of CONTRIBUTING.md: each names few files to edit, and whatever it names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_FILES = 3
EDIT = "You edit: "
SECTIONS = re.split(
    r"^## (?=To )", (ROOT / "CONTRIBUTING.md").read_text().split("\n## House rules")[0], flags=re.MULTILINE
)
RECIPES = dict(section.split("\n", 1) for section in SECTIONS[1:])
PATH = re.compile(r"`((?:\w[\w.-]*|<\w+>)(?:/(?:[\w.-]+|<\w+>(?:\.\w+)?))+/?)`")
"""Text in backticks with a slash between words, and perhaps a word in angle brackets for a name to choose."""
MODULE = re.compile(r"`python -m ([\w.]+)")
WITHOUT_FOLDER = {"det", "pytest", "npm"}


def edited(text):
    """The files that a recipe says to edit."""
    (line,) = [line for line in text.splitlines() if line.startswith(EDIT)]
    return re.findall(r"`([^`]+)`", line)


def exists(path):
    """Whether a path is there, with anything in place of a name to choose."""
    pattern = re.sub(r"<\w+>", "*", path.rstrip("/"))
    return any(ROOT.glob(pattern))


def test_there_are_recipes():
    assert len(RECIPES) >= 11


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_names_few_files_to_edit(title):
    assert 1 <= len(edited(RECIPES[title])) <= MOST_FILES


@pytest.mark.parametrize("title", RECIPES)
def test_what_a_recipe_names_exists(title):
    text = RECIPES[title]
    named = {*edited(text), *PATH.findall(text)}
    missing = [path for path in sorted(named) if not exists(path)]
    modules = [module.replace(".", "/") for module in MODULE.findall(text)]
    missing += [
        module for module in modules if not (exists(f"{module}.py") or exists(f"{module}/__main__.py"))
    ]
    assert not missing


def test_a_path_that_is_gone_is_noticed():
    text = "2. Write `services/searcher/methods/<name>.py`; see `services/kit/authz/gone.py` and `a b/c`."
    assert [path for path in PATH.findall(text) if not exists(path)] == ["services/kit/authz/gone.py"]
