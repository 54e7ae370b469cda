"""Whatever a script prints comes through to whoever reads: whole, or with a mark where it cannot."""

import pytest

from tests.fixtures.browser import MARKS
from tests.fixtures.browser import browser as browser
from tests.fixtures.browser import signed_in as signed_in
from tests.fixtures.local_cluster import wait_for

pytestmark = MARKS
LONG = 10_000_000
WRITES = rf"""
import os
def put(data):
    while data:
        data = data[os.write(1, data):]
put(b"x" * {LONG} + b" end of it\n")
put(b"nul \0 here\n")
put(b"bad \xff\xfe bytes\n")
put(b"half \xed\xa0\x80 of a pair\n")
put(b"\x1b[1;31mred\x1b[0m and \x1b]0;title\x07plain\n")
put(b"bell\x07 back\x08 delete\x7f escape\x1b\n")
put("\u2028 separator \u202e turned \U0001f600\n".encode())
put(b"first\rsecond\rthird\r\n")
put(b"<img src=x onerror='document.title=1'><script>document.title=2</script>\n")
put(b"[rank=99999999999] ERROR: odd rank\n")
put(b"\n")
put(b"\t tab and no end")
"""
CONFIG = """
name: writes-anything
entrypoint: python3 writes.py
max_restarts: 0
searcher: {name: single, metric: x, max_length: 1}
"""
SHOWN = [
    "nul \ufffd here",
    "bad \ufffd\ufffd bytes",
    "half \ufffd\ufffd\ufffd of a pair",
    "\x1b[1;31mred\x1b[0m and \x1b]0;title\x07plain",
    "bell\x07 back\x08 delete\x7f escape\x1b",
    "\u2028 separator \u202e turned \U0001f600",
    "first",
    "second",
    "third",
    "<img src=x onerror='document.title=1'><script>document.title=2</script>",
    "[rank=99999999999] ERROR: odd rank",
    "",
    "\t tab and no end",
]


@pytest.fixture(scope="module")
def trial(shared_cluster, tmp_path_factory):
    folder = tmp_path_factory.mktemp("writes")
    (folder / "writes.py").write_text(WRITES)
    (folder / "config.yaml").write_text(CONFIG)
    id = shared_cluster.create("config.yaml", folder)
    shared_cluster.wait_for_end(id)
    trial_id = shared_cluster.first_trial(id)
    last = lambda: shared_cluster.get(  # noqa: E731
        f"trials/{trial_id}/logs/page", sources="task", orderBy="ORDER_BY_DESC", limit=1
    )["lines"]
    wait_for(lambda: last() and last()[0]["log"] == SHOWN[-1], 60, "the last line")
    return trial_id


def test_every_line_can_be_read(shared_cluster, trial):
    records = shared_cluster.stream(f"trials/{trial}/logs", sources="task")
    texts = [record["log"].removesuffix("\n") for record in records]
    assert texts[-len(SHOWN) :] == SHOWN
    # A line without end comes as many: nothing of it is lost.
    pieces = texts[: -len(SHOWN)]
    assert "".join(pieces).replace("……", "") == "x" * LONG + " end of it"
    assert max(len(piece.encode()) for piece in pieces) == 32 * 1024
    newest = {"orderBy": "ORDER_BY_DESC", "limit": len(SHOWN)}
    page = shared_cluster.get(f"trials/{trial}/logs/page", sources="task", **newest)
    assert [line["log"] for line in page["lines"]] == SHOWN[::-1]
    matches = shared_cluster.get(f"trials/{trial}/logs/page", searchText="end of it")
    assert [line["log"][-9:] for line in matches["lines"]] == ["end of it"]


def test_it_is_printed_and_downloaded_as_it_is(shared_cluster, trial):
    session = shared_cluster.det("trial", "logs", trial, "--source", "task")
    assert "red\x1b[0m" in session.stdout
    assert session.stdout.count("x") > LONG
    filtered = shared_cluster.det("trial", "logs", trial, "--regex", r"^bell\x07.*\x1b$")
    assert len([line for line in filtered.stdout.splitlines() if "bell" in line]) == 1


def test_nothing_of_it_happens_in_a_browser(shared_cluster, signed_in, trial):
    page = signed_in(shared_cluster)
    page.goto(f"/det/trials/{trial}")
    page.get_by_role("link", name="Logs").click()
    lines = page.locator(".log .line .text")
    page.get_by_text("tab and no end").wait_for()
    texts = lines.all_text_contents()
    assert "red and plain" in texts
    assert "bell\u2407 back\u2408 delete\u2421 escape" in texts
    assert any(text.startswith("<img src=x onerror=") for text in texts)
    assert page.title() not in ("1", "2")
    assert page.locator(".log img, .log script").count() == 0
