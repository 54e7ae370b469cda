"""The web UI's types of records are those that the REST API documents."""

import json
import subprocess

import pytest

from docs.site_builder.schemas import schemas
from tests.webui.test_units import NODE, WEBUI

MAKER = WEBUI / "node_modules" / "openapi-typescript" / "bin" / "cli.js"
KEPT = WEBUI / "src" / "api" / "schema.ts"


@pytest.mark.skipif(NODE is None, reason="node is not installed")
@pytest.mark.skipif(not MAKER.exists(), reason="openapi-typescript is not installed: make setup")
def test_types_are_those_of_the_document(tmp_path):
    (tmp_path / "schemas.json").write_text(json.dumps(schemas()))
    made = tmp_path / "schema.ts"
    subprocess.run(
        [NODE, MAKER, tmp_path / "schemas.json", "--output", made],
        cwd=WEBUI,
        capture_output=True,
        timeout=120,
        check=True,
    )
    assert made.read_text() == KEPT.read_text(), "the records of the REST API have changed: make types"
