"""The wheels on every Python that they promise to run on but that of the tests."""

import shutil
import sys

import pytest
from packaging.specifiers import SpecifierSet

from tests.fixtures.from_wheels import check_pins, cluster_of, import_all, run_script, run_search, write_files
from tests.fixtures.interpreters import find_interpreter
from tests.fixtures.wheels import PROJECTS, Environment

pytestmark = pytest.mark.timeout(3600)
CLASSIFIER = "Programming Language :: Python :: "
PROMISED = [
    line.removeprefix(CLASSIFIER)
    for line in PROJECTS["steadfast-sdk"]["classifiers"]
    if line.startswith(CLASSIFIER)
]


def distributions_for(version):
    """The distributions that promise to run on a version: the SDK goes further back than the platform."""
    return [name for name, project in PROJECTS.items() if version in SpecifierSet(project["requires-python"])]


@pytest.fixture(params=PROMISED)
def environment(request, wheels, tmp_path):
    """The wheels that are for a version, installed on it."""
    if request.param == f"{sys.version_info.major}.{sys.version_info.minor}":
        pytest.skip(f"the tests run on Python {request.param}, and so does tests/live/test_wheels.py")
    python = find_interpreter(request.param)
    if python is None:
        pytest.skip(f"no python{request.param} that starts, on PATH or in pyenv")
    made = Environment(tmp_path / "environment", python)
    made.install([wheels.paths[name] for name in distributions_for(request.param)])
    yield made
    # It is large, and pytest keeps the temporary folders of three runs.
    shutil.rmtree(made.folder)


def test_the_wheels_install_and_run(environment, tmp_path):
    folder = write_files(tmp_path / "scripts")
    names = distributions_for(environment.python_version)
    check_pins(environment)
    assert import_all(environment, folder, names)
    run_script(environment, folder)
    if "steadfast" in names:
        with cluster_of(environment, folder) as address:
            run_search(environment, folder, address)
