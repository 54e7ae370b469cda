"""Generated pages are those that the code generates today; links in the documents lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    p for p in ROOT.rglob("*.md") if not {".venv", ".git", "build", "listings", "node_modules"} & set(p.parts)
]


def test_generated_pages_are_current():
    command = [sys.executable, "-m", "docs.generate", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def broken_links(page):
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    return [target for target in targets if not (page.parent / target).exists()]


def test_links_lead_somewhere():
    assert PAGES
    broken = [f"{page.relative_to(ROOT).as_posix()}: {link}" for page in PAGES for link in broken_links(page)]
    assert not broken, "\n" + "\n".join(broken)


def test_guarantees_name_tests_that_are_there():
    page = (ROOT / "docs" / "guarantees.md").read_text()
    named = re.findall(r"\| `(tests/[\w/]+\.py)(?:::(\w+))?` \|", page)
    assert len(named) > 40
    there = {path: (ROOT / path).read_text() if (ROOT / path).exists() else "" for path, _ in named}
    assert [one for one in named if f"def {one[1] or 'test_'}" not in there[one[0]]] == []
