"""Commands, routes and fields of Determined 0.25 beside ours: what is not the same says why."""

import pytest

from docs.site_builder import compared


@pytest.mark.parametrize("kind", compared.KINDS)
def test_what_is_not_the_same_says_why(kind):
    rows, remarks = compared.KINDS[kind]
    silent = [
        row.name
        for row in rows()
        if row.state != compared.SAME and not row.difference and not compared.remark(row, remarks)
    ]
    assert silent == [], "give each a remark in docs/site_builder/compared_remarks.py"


@pytest.mark.parametrize("kind", compared.KINDS)
def test_no_note_is_left_about_what_is_the_same_now(kind):
    rows, remarks = compared.KINDS[kind]
    used = {compared.remark(row, remarks) for row in rows() if row.state != compared.SAME}
    assert [start for start, text in remarks.items() if text not in used] == []


@pytest.mark.parametrize(("kind", "least"), [("commands", 140), ("routes", 180), ("fields", 120)])
def test_all_of_0_25_is_looked_at(kind, least):
    assert len(compared.KINDS[kind][0]()) >= least


def test_every_route_of_0_25_is_there():
    assert [row.name for row in compared.route_rows() if row.state == compared.ABSENT] == []


def test_a_command_that_lost_an_option_is_reported(monkeypatch):
    payload = {"names": ["list", "ls"], "options": ["--csv", "--made-up"], "verb": True}
    row = compared._command("experiment list", payload)
    assert (row.state, row.difference) == (compared.DIFFERS, "without --made-up")
    gone = compared._command("experiment vanish", payload)
    assert gone.state == compared.ABSENT
