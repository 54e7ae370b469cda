"""Databases of other releases: an earlier one is brought up to date, a later one is left as it is."""

import ast
import importlib.util
from pathlib import Path

import pytest
import sqlalchemy as sa

from services.kit.migrate import VERSIONS, _newest, open_database

SERVICES = Path(__file__).parents[2] / "services"
REVISIONS = sorted(SERVICES.glob("*/migrations/versions/[0-9]*.py"))
TAKING = ("drop_", "rename_", "alter_", "batch_alter_")
FROM_BEFORE = {
    "metrics/0002_chunks.py": {"drop_table"},
    "metrics/0003_log_chunks.py": {"drop_table"},
}
"""Revisions that took something away before it was promised that none does."""


@pytest.fixture(params=sorted({path.parents[2].name for path in REVISIONS}))
def owner(request):
    return request.param


def version(database):
    with database.engine.connect() as connection:
        return connection.execute(sa.select(VERSIONS.c.version_num)).scalar()


def test_a_schema_of_a_later_release_is_left_as_it_is(owner, tmp_path):
    url = f"sqlite:///{tmp_path}/{owner}.db"
    first = open_database(url, owner)
    assert version(first) == _newest(SERVICES / owner / "migrations")
    with first.engine.begin() as connection:
        connection.execute(sa.update(VERSIONS).values(version_num="9999"))
        connection.execute(sa.text("create table of_tomorrow (id integer)"))
    first.close()
    again = open_database(url, owner)
    assert version(again) == "9999"
    assert sa.inspect(again.engine).has_table("of_tomorrow")
    again.close()


def replaces_indexes(path):
    """Whether each index that a revision drops has another in its place that begins with its columns."""
    spec = importlib.util.spec_from_file_location(f"revision_{path.stem}", path)
    revision = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(revision)
    return all(
        any(table == made and columns == begins[: len(columns)] for _, made, begins in revision.MADE)
        for _, table, columns in revision.REPLACED
    )


@pytest.mark.parametrize("path", REVISIONS, ids=lambda path: f"{path.parents[2].name}/{path.name}")
def test_revisions_only_add(path):
    """Or a release that runs beside a later one, or takes its place again, lacks what it reads."""
    tree = ast.parse(path.read_text())
    upgrade = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "upgrade")
    names = {node.attr for node in ast.walk(upgrade) if isinstance(node, ast.Attribute)}
    taking = {name for name in names if name.startswith(TAKING)}
    if "drop_index" in taking and replaces_indexes(path):
        taking.remove("drop_index")
    calls = [node for node in ast.walk(upgrade) if isinstance(node, ast.Call)]
    for added in (
        call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "add_column"
    ):
        column = next(argument for argument in added.args if isinstance(argument, ast.Call))
        words = {word.arg: ast.unparse(word.value) for word in column.keywords}
        # Who does not know the column writes rows without it.
        assert words.get("nullable") != "False" or "server_default" in words, ast.unparse(column)
    assert taking == FROM_BEFORE.get(f"{path.parents[2].name}/{path.name}", set())
