"""An empty SQLite database gets in one step what the revisions of its service would make of it.

`python -m tests.kit.test_schemas` writes these steps, after a revision was added.
"""

import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from services.kit import migrate
from services.kit.database import Database

SERVICES = Path(migrate.__file__).parents[1]
OWNERS = sorted(path.parents[1].name for path in SERVICES.glob("*/migrations/versions"))
EVERYTHING = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type DESC, name"
"""Tables before indexes, which SQLAlchemy makes in the order of a set."""


def schema_by_revisions(owner, folder):
    """What the revisions of a service leave in an empty database: its statements, and the newest revision."""
    database = Database(f"sqlite:///{folder}/{owner}.db")
    migrate._upgrade(database, SERVICES / owner / "migrations")
    database.close()
    return contents(Path(folder) / f"{owner}.db")


def contents(path):
    """Statements that make the tables and indexes of a database, and rows of all its tables."""
    connection = sqlite3.connect(path)
    try:
        made = [sql for (sql,) in connection.execute(EVERYTHING)]
        tables = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        return made, {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in tables}
    finally:
        connection.close()


def schema_text(made, rows):
    """The text of a `schema.sql`."""
    filled = {name for name, content in rows.items() if content}
    assert filled == {"alembic_version"}, (
        f"revisions leave rows in {filled}: they have to be in the text, too"
    )
    ((newest,),) = rows["alembic_version"]
    return "".join(f"{sql};\n" for sql in [*made, f"INSERT INTO alembic_version VALUES ('{newest}')"])


@pytest.mark.parametrize("owner", OWNERS)
def test_the_schema_is_what_the_revisions_make(owner, tmp_path):
    expected = schema_by_revisions(owner, tmp_path)
    path = tmp_path / "made.db"
    migrate.open_database(f"sqlite:///{path}", owner).close()
    assert contents(path) == expected, "run python -m tests.kit.test_schemas"
    stored = (SERVICES / owner / "migrations" / migrate.SCHEMA_FILE).read_text()
    assert stored == schema_text(*expected), "run python -m tests.kit.test_schemas"


def test_a_revision_that_the_schema_lacks_is_added(tmp_path, monkeypatch):
    upgrades = []
    monkeypatch.setattr(migrate, "_newest", lambda folder: "9999")
    monkeypatch.setattr(migrate, "_upgrade", lambda database, folder: upgrades.append(folder.parent.name))
    migrate.open_database(f"sqlite:///{tmp_path}/one.db", "searcher").close()
    assert upgrades == ["searcher"]


def test_tables_without_a_version_are_left_to_the_revisions(tmp_path, monkeypatch):
    monkeypatch.setattr(migrate, "_upgrade", lambda database, folder: None)
    connection = sqlite3.connect(tmp_path / "one.db")
    connection.execute("CREATE TABLE positions (owner)")
    connection.close()
    migrate.open_database(f"sqlite:///{tmp_path}/one.db", "searcher").close()
    assert contents(tmp_path / "one.db") == (["CREATE TABLE positions (owner)"], {"positions": []})


def test_an_empty_database_needs_no_alembic(tmp_path):
    program = (
        "import sys; from services.kit import migrate; "
        "migrate.open_database(sys.argv[1], 'metrics').close(); print('alembic' in sys.modules)"
    )
    command = [sys.executable, "-c", program, f"sqlite:///{tmp_path}/one.db"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"


if __name__ == "__main__":
    for owner in OWNERS:
        with tempfile.TemporaryDirectory() as folder:
            text = schema_text(*schema_by_revisions(owner, folder))
        (SERVICES / owner / "migrations" / migrate.SCHEMA_FILE).write_text(text)
