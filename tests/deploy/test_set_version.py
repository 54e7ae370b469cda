"""A new version reaches every file that states it, and nothing else changes."""

import shutil

import pytest

from deploy.set_version import PLACES, ROOT, set_version
from tests.fixtures.wheels import PROJECTS

VERSION = PROJECTS["steadfast"]["version"]


@pytest.fixture
def tree(tmp_path):
    for name in PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def texts(tree):
    return {name: (tree / name).read_text() for name in PLACES}


def test_only_the_version_changes(tree):
    before = texts(tree)
    set_version("7.8.9", tree)
    after = texts(tree)
    assert all("7.8.9" in text for text in after.values())
    assert {name: text.replace("7.8.9", VERSION) for name, text in after.items()} == before


def test_what_is_no_version_is_refused(tree):
    before = texts(tree)
    with pytest.raises(ValueError, match=r"'v2' is no version: give one like 0\.2\.0"):
        set_version("v2", tree)
    assert texts(tree) == before


def test_nothing_is_written_if_a_file_has_no_version(tree):
    (tree / "worker" / "registration.py").write_text("")
    before = texts(tree)
    with pytest.raises(ValueError, match=r"worker/registration\.py has 0 places like"):
        set_version("7.8.9", tree)
    assert texts(tree) == before
