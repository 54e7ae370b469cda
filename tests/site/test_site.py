"""The site is built from the pages as they are, and a link that leads nowhere stops it."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from docs.site_builder import stage

ROOT = Path(__file__).parents[2]


def build(folder):
    command = [sys.executable, "-m", "docs.site_builder", str(folder)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_site_is_built_without_a_warning(tmp_path):
    done = build(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "site" / "docs" / "reference" / "core.html").read_text()
    assert "report_training_metrics" in page
    assert "max_restarts" in (tmp_path / "site" / "search.json").read_text()
    assert "../core_api.zip" in (tmp_path / "site" / "examples" / "core_api" / "index.html").read_text()
    with zipfile.ZipFile(tmp_path / "site" / "examples" / "core_api.zip") as archive:
        assert (
            archive.read("examples/core_api/1_metrics.py")
            == (ROOT / "examples" / "core_api" / "1_metrics.py").read_bytes()
        )


@pytest.mark.parametrize("link", ["nowhere.md", "index.md#no-such-heading"])
def test_a_link_that_leads_nowhere_is_a_fault(tmp_path, link):
    source = tmp_path / "source"
    (source / "docs").mkdir(parents=True)
    (source / "docs" / "index.md").write_text(f"# Start\n\n[there]({link})\n")
    settings = (ROOT / "docs" / "site_builder" / "zensical.toml").read_text()
    settings_without_nav = (
        settings[: settings.index("nav = [")] + settings[settings.index("[project.theme]") :]
    )
    (tmp_path / "zensical.toml").write_text(settings_without_nav.replace("@ROOT@", str(ROOT)))
    command = [sys.executable, "-m", "zensical", "build", "--strict", "-f", str(tmp_path / "zensical.toml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0, done.stdout


def test_links_to_files_bring_the_files_along(tmp_path):
    stage.gather(tmp_path)
    assert (tmp_path / "docs" / "index.md").exists()
    assert (tmp_path / "docs" / "guides" / "pictures" / "overview-light.png").exists()


def nav_pages(entry):
    if isinstance(entry, str):
        yield entry
    else:
        for each in entry.values() if isinstance(entry, dict) else entry:
            yield from nav_pages(each)


def test_every_page_stands_in_the_navigation():
    settings = tomllib.loads((ROOT / "docs" / "site_builder" / "zensical.toml").read_text())
    listed = set(nav_pages(settings["project"]["nav"]))
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert {path for path in pages - listed if not path.startswith("docs/decisions/")} == set()
    assert "docs/decisions/index.md" in listed


def test_every_decision_is_listed():
    index = (ROOT / "docs" / "decisions" / "index.md").read_text()
    files = [path.name for path in (ROOT / "docs" / "decisions").glob("0*.md")]
    assert files
    assert [name for name in files if f"]({name})" not in index] == []
