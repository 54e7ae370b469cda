"""What people and scripts may put into the log can be saved, whichever database there is."""

import msgspec
import pytest
import sqlalchemy as sa

from det_contracts.envelope import Recorded
from det_contracts.events import searcher
from services.catalogue import audit
from services.catalogue.store import CHECKPOINTS, EXPERIMENTS, TRIALS, write_rows
from services.gateway.app import RULES
from services.kit.rules import record_types
from services.kit.snapshot import Snapshot
from tests.gateway import stories as story

FILES, LARGEST = 20_000, 2**50
"""As many as a checkpoint may name in one fact, each as large as one may be said to be."""
LONG = "".join(chr(0x4E00 + (number * 7919) % 20000) for number in range(4000))


def saved(database, *events, actor="user:ann"):
    """Fold and save events as the gateway does."""
    state, records, folded = RULES.state(), {}, []
    for position, event in enumerate(events, 1):
        recorded = Recorded(position, event, f"e{position}", actor, 1e6, "", "CONTROL")
        folded.append(recorded)
        for kind, key in RULES.evolve(state, recorded):
            records[kind, key] = getattr(state, kind).get(key)
    assert {kind for kind, _ in records} <= set(record_types(RULES.state))
    with database.engine.begin() as connection:
        Snapshot("gateway", RULES.state, RULES.fold_version).save(
            connection, records, {"CONTROL": len(events)}
        )
        write_rows(connection, records, folded)
    return state


def rows(database, table):
    with database.engine.connect() as connection:
        return list(connection.execute(sa.select(table)).mappings())


def huge(id, uuid):
    return msgspec.structs.replace(
        story.stored(id, uuid, 100), resources={f"{n}": LARGEST for n in range(FILES)}
    )


def test_sizes_that_no_disk_has_are_saved(database):
    trial = [story.trial_created(1), *story.running(1)]
    saved(database, story.created(1), *trial, huge(1, "a"), huge(1, "b"))
    (trial_row,) = rows(database, TRIALS)
    assert trial_row["checkpoint_bytes"] > 0
    assert len(rows(database, CHECKPOINTS)) == 2


@pytest.mark.parametrize("text", ["a\0b", LONG], ids=["nul", "long"])
def test_texts_of_people_are_saved_whatever_is_in_them(database, text):
    named = story.created(1, name=text, description=text, labels=[text])
    saved(
        database,
        msgspec.structs.replace(named, reason=text),
        searcher.ExperimentPaused(1, text),
        actor=f"user:{text[:128]}",
    )
    (experiment_row,) = rows(database, EXPERIMENTS)
    assert experiment_row["name"].replace("\u2400", "\0") == text
    assert len(rows(database, audit.AUDIT)) == 2


@pytest.mark.parametrize("text", ["a\0b", "\ud800", LONG, "'; drop table snapshots; --"])
def test_records_are_looked_for_under_any_text(database, text):
    """A path may name anything; who asks for what cannot be there must not end the gateway."""
    saved(database, story.created(1))
    snapshot = Snapshot("gateway", RULES.state, RULES.fold_version)
    with database.engine.connect() as connection:
        pages = snapshot.pages(connection, [("checkpoints", text), ("allocations", text)], [text, "1"])
        assert snapshot.pages(connection, [], ["1"]).records == pages.records
