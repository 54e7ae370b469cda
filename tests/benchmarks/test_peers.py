"""Peers beside whom we are measured: their environments, and what becomes of one that cannot be measured."""

import pytest

from benchmarks import beside_peers
from benchmarks.beside_peers import Contender, Size, peer, turns
from benchmarks.peers import environments, program
from benchmarks.peers.environments import REQUIREMENTS, Missing, interpreter
from benchmarks.peers.program import Program

ALL = (*beside_peers.TRIALS, *beside_peers.REPORTS, *beside_peers.STORED, *beside_peers.CURVES)


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Requirements and environments of a test."""
    requirements, cache = tmp_path / "requirements", tmp_path / "cache"
    requirements.mkdir()
    monkeypatch.setattr(environments, "REQUIREMENTS", requirements)
    monkeypatch.setattr(environments, "CACHE", cache)
    return requirements, cache


def test_every_version_is_pinned():
    for file in REQUIREMENTS.glob("*.txt"):
        assert all("==" in line for line in file.read_text().splitlines()), file.name


def test_what_is_not_installed_is_not_installed_unasked(folders):
    requirements, cache = folders
    (requirements / "some.txt").write_text("some==1\n")
    with pytest.raises(Missing, match="is not installed"):
        interpreter("some", install=False)
    assert not cache.exists()


def test_an_environment_of_other_versions_counts_as_none(folders):
    requirements, cache = folders
    (requirements / "some.txt").write_text("some==2\n")
    (cache / "some").mkdir(parents=True)
    (cache / "some" / "installed.txt").write_text("some==1\n")
    with pytest.raises(Missing):
        interpreter("some", install=False)
    (cache / "some" / "installed.txt").write_text("some==2\n")
    assert interpreter("some", install=False) == cache / "some" / "bin" / "python"


@pytest.mark.full
@pytest.mark.live
def test_an_environment_that_cannot_be_made_says_why_and_is_tried_again(folders):
    requirements, cache = folders
    (requirements / "some.txt").write_text("./no-such-folder\n")
    with pytest.raises(Missing, match=r"it cannot be installed: .*no-such-folder"):
        interpreter("some", install=True)
    assert not (cache / "some" / "installed.txt").exists()


@pytest.mark.live
def test_a_program_answers_and_its_memory_is_seen():
    for count in (3, 30, 300):
        answer, most = Program("Bare", "", "bare_processes", "trials").run(count, install=False)
        assert answer["per_second"] > 0
        # A short one may end between two looks at its memory, or have been seen when it had only begun.
        if most > 5_000_000:
            break
    assert most > 5_000_000


@pytest.mark.live
def test_a_failed_program_is_reported_with_its_last_line():
    with pytest.raises(Missing, match="no-such-measure failed: KeyError: 'no-such-measure'"):
        Program("Bare", "", "bare_processes", "no-such-measure").run(3, install=False)


@pytest.mark.live
def test_a_program_that_hangs_is_ended(monkeypatch):
    monkeypatch.setattr(program, "PATIENCE_S", 0.01)
    with pytest.raises(Missing, match=r"trials is not done after 0 s"):
        Program("Bare", "", "bare_processes", "trials").run(500, install=False)


def test_who_cannot_be_measured_is_left_out_by_name_and_the_others_stay(monkeypatch, capsys):
    monkeypatch.setattr(environments, "CACHE", REQUIREMENTS / "nowhere")
    ours = Contender("Ours", lambda count, _: ({"per_second": float(count)}, 1), part=2)
    measured = turns([ours, peer("Ray Tune", "ray", "ray_tune", "report")], 10, Size(install=False, least=1))
    assert measured == [(ours, 5, [({"per_second": 5.0}, 1)] * 3)]
    assert capsys.readouterr().err.startswith("Ray Tune is left out: it is not installed")


def test_each_group_begins_with_us_whom_the_others_are_compared_with():
    for group in (beside_peers.TRIALS, beside_peers.REPORTS, beside_peers.STORED, beside_peers.CURVES):
        assert group[0].title.startswith(beside_peers.OURS)


def test_titles_hold_no_colon_which_ends_them_in_rows():
    assert not [contender.title for contender in ALL if ":" in contender.title]
