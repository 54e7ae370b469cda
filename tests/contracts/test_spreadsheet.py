"""Tables to take away: what a spreadsheet would work out is a text, and numbers stay numbers."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from pathlib import Path

import pytest

from det_contracts import spreadsheet

ROOT = Path(__file__).parents[2]
CELLS = json.loads((ROOT / "webui/src/parts/cells.json").read_text(encoding="utf-8"))
"""The web UI writes tables by the same examples."""
NO_TABLES = {"worker/launchers/oci.py"}
"""Where `csv` writes something else: options of a container engine."""


@pytest.mark.parametrize(("value", "written"), CELLS)
def test_a_text_is_no_formula_and_a_number_stays_one(value, written):
    assert spreadsheet.cell(value) == written


@pytest.mark.parametrize("value", [-1, -0.5, -math.inf, 2**70, True, None])
def test_what_is_no_text_stays_as_it_is(value):
    assert spreadsheet.cell(value) is value


def test_cells_of_headers_and_rows_come_back():
    file = io.StringIO()
    spreadsheet.write(file, [("=a", "b"), (-0.5, 'say "x",\nor not')])
    assert list(csv.reader(io.StringIO(file.getvalue(), newline=""))) == [
        ["'=a", "b"],
        ["-0.5", 'say "x",\nor not'],
    ]


def test_nobody_writes_tables_otherwise():
    writes = re.compile(r"csv\.writer|DictWriter|to_csv\(")
    folders = ("contracts", "sdk", "services", "worker")
    files = {
        str(path.relative_to(ROOT))
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if writes.search(path.read_text(encoding="utf-8"))
    }
    assert files == {"contracts/det_contracts/spreadsheet.py", *NO_TABLES}
