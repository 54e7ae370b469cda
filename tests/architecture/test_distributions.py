"""What the three distributions promise agrees: their version, each other, the Pythons."""

import re

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import determined
from tests.fixtures.wheels import CONSTRAINTS, FOLDERS, PROJECTS, pins
from worker import registration

VERSION = PROJECTS["steadfast"]["version"]
"""That in the root's pyproject.toml; all other places follow it."""
CLASSIFIER = "Programming Language :: Python :: 3."


def requirements(project):
    extras = project.get("optional-dependencies", {}).values()
    return [Requirement(line) for lines in (project["dependencies"], *extras) for line in lines]


TAKEN_APART = {"h11"}
"""What is private in them is used: each release has to be looked at, so they have an upper bound, too."""


@pytest.mark.parametrize("name", FOLDERS)
def test_all_have_one_version_and_pin_each_other(name):
    assert PROJECTS[name]["version"] == VERSION, f"in {FOLDERS[name]}/pyproject.toml"
    siblings = [line for line in requirements(PROJECTS[name]) if line.name in FOLDERS]
    assert {str(line) for line in siblings} == {f"{line.name}=={VERSION}" for line in siblings}


def test_scripts_workers_and_the_chart_have_the_same_version():
    assert determined.__version__.endswith(f"+steadfast.{VERSION}")
    assert registration.VERSION == VERSION
    chart = yaml.safe_load((CONSTRAINTS.parent / "deploy" / "helm" / "steadfast" / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (VERSION, VERSION)


@pytest.mark.parametrize("name", FOLDERS)
def test_every_other_requirement_has_a_lower_bound(name):
    for line in requirements(PROJECTS[name]):
        if line.name not in FOLDERS:
            allowed = [{">="}, {">=", "<"}] if line.name in TAKEN_APART else [{">="}]
            assert {specifier.operator for specifier in line.specifier} in allowed, f"{line} in {name}"


@pytest.mark.parametrize("name", FOLDERS)
def test_the_pythons_named_are_those_required(name):
    project = PROJECTS[name]
    named = {c.removeprefix(CLASSIFIER) for c in project["classifiers"] if c.startswith(CLASSIFIER)}
    required = SpecifierSet(project["requires-python"])
    assert named == {str(n) for n in range(15) if f"3.{n}" in required}


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_constraints_name_exact_versions_that_requirements_allow(python):
    lines = [line for line in CONSTRAINTS.read_text().splitlines() if line]
    exact = pins(python)
    assert all(re.fullmatch(r"[\w.-]+==[\w.+!]+(; python_version .*)?", line) for line in lines)
    for line in (line for project in PROJECTS.values() for line in requirements(project)):
        if line.name not in FOLDERS:
            pinned = exact[re.sub("[-_.]+", "-", line.name).lower()]
            assert line.specifier.contains(pinned), f"{line}, pinned at {pinned}"
