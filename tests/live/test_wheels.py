"""The three distributions as a user gets them: built, installed into an empty environment, and used there."""

import zipfile

import pytest
import requests
from packaging.requirements import Requirement

from tests.fixtures.from_wheels import check_pins, cluster_of, import_all, run_script, run_search, write_files
from tests.fixtures.wheels import FOLDERS, ROOT, WEBUI

pytestmark = pytest.mark.timeout(1800)
SIBLINGS = {
    "steadfast-contracts": set(),
    "steadfast-sdk": {"steadfast-contracts"},
    "steadfast": {"steadfast-contracts", "steadfast-sdk"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("user") / "scripts")


@pytest.mark.parametrize("name", FOLDERS)
def test_a_wheel_holds_its_packages_and_nothing_else(wheels, name):
    assert wheels.sources(name)
    assert wheels.names(name) == wheels.sources(name)


@pytest.mark.parametrize("name", FOLDERS)
def test_a_wheel_says_what_it_is(wheels, name):
    metadata = wheels.metadata(name)
    assert metadata["Name"] == name
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Author"] == "The Steadfast maintainers"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload().startswith("# ")
    assert len(metadata.get_all("Classifier")) > 5
    with zipfile.ZipFile(wheels.paths[name]) as wheel:
        assert [n for n in wheel.namelist() if n.endswith(".dist-info/licenses/LICENSE")]


def test_the_distributions_require_each_other_at_their_own_version(environment):
    version, _ = environment.installed["steadfast"]
    for name, siblings in SIBLINGS.items():
        own, requires = environment.installed[name]
        pinned = {r.name: str(r.specifier) for r in map(Requirement, requires) if r.name in FOLDERS}
        assert (own, pinned) == (version, dict.fromkeys(siblings, f"=={version}"))


def test_all_that_is_installed_is_pinned(environment):
    check_pins(environment)


def test_every_module_finds_what_it_imports(environment, folder):
    assert len(import_all(environment, folder, list(FOLDERS))) > 300


def test_a_script_runs_without_a_cluster(environment, folder):
    run_script(environment, folder)


@pytest.mark.full
@pytest.mark.parametrize("environment", ["installed"], indirect=True)
def test_a_search_and_the_web_ui_run_from_the_wheels(environment, folder, wheels):
    with cluster_of(environment, folder) as address:
        run_search(environment, folder, address)
        check_page(wheels, address)


def check_page(wheels, address):
    """The web UI is served as the wheel has it; the status page, where it was not built."""
    page = requests.get(f"{address}/", timeout=60)
    assert page.ok
    if not (ROOT / WEBUI / "index.html").exists():
        return
    assert page.content == wheels.read("steadfast", f"{WEBUI}/index.html")
    assets = [name for name in wheels.names("steadfast") if name.startswith(f"{WEBUI}/assets/")]
    assert assets
    for name in assets:
        answer = requests.get(f"{address}/det/assets/{name.rpartition('/')[2]}", timeout=60)
        assert answer.content == wheels.read("steadfast", name)
