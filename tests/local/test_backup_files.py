"""Parts of a backup: streams out of one broker and into another, files, and what is refused."""

import asyncio
import io

import pytest
from nacl import pwhash

from det_contracts import subjects
from services.kit.credentials import Authority
from services.kit.jetstream_api import request
from services.kit.log import Draft
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from services.kit.log_range import read_range
from services.local.backup import CannotBackUp, Manifest, back_up, decrypt_keys, key_box
from services.local.home import Home, Plan
from services.local.restore import METRICS_STORE, _write_plan, verify_backup
from services.local.stream_copies import CannotCopy, export_stream, import_stream
from tests.fixtures.ports import reserved_port

CONTROL = subjects.CONTROL


def test_keys_open_with_their_key_alone(monkeypatch):
    # A key is costly to guess, and to derive. Here it is derived three times.
    for limit in ("OPSLIMIT", "MEMLIMIT"):
        least = getattr(pwhash.argon2id, f"{limit}_MIN")
        monkeypatch.setattr(pwhash.argon2id, f"{limit}_MODERATE", least)
    salt = b"s" * 16
    sealed = key_box(b"the right key", salt).encrypt(b"keys")
    assert decrypt_keys(key_box(b"the right key", salt), sealed) == b"keys"
    with pytest.raises(CannotBackUp, match="not the key"):
        decrypt_keys(key_box(b"another key", salt), sealed)


def test_a_backup_reports_a_missing_or_stopped_cluster(tmp_path):
    home = Home("test", tmp_path)
    with pytest.raises(CannotBackUp, match="no cluster 'test'"):
        back_up(home, tmp_path / "backup", b"a long key")
    home.write_plan(Plan("test"))
    with pytest.raises(CannotBackUp, match="is not running"):
        back_up(home, tmp_path / "backup", b"a long key")
    assert not (tmp_path / "backup").exists()


@pytest.mark.parametrize("text", ["{", "{}", '{"form": 7}'])
def test_a_damaged_list_of_a_backup_is_reported(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(CannotBackUp, match="damaged"):
        verify_backup(tmp_path)


@pytest.mark.parametrize("place", ["/copies", "s3://bucket/copies/"])
def test_a_restored_cluster_copies_its_metrics_elsewhere(tmp_path, place):
    """Both have the same log, and each deletes what its own newest copy does not need."""
    source, home, staging = (Home(name, tmp_path) for name in ("first", "second", "second.restoring"))
    source.write_plan(Plan("first", settings={METRICS_STORE: place}))
    manifest = Manifest(made_at=0.0, cluster="first", salt=b"", streams={}, checkpoints="/c", files={})
    _write_plan(home, staging, source.path, manifest, None)
    assert staging.read("plan.json")["settings"] == {METRICS_STORE: f"{place.rstrip('/')}/restored-as-second"}


@pytest.mark.live
@pytest.mark.timeout(120)
def test_a_stream_that_was_cut_short_is_refused(broker):
    async def work():
        connection = await broker.connect(broker.authority.operator())
        await ensure_streams(connection.jetstream())
        log = JetStreamLog(connection)
        for number in range(300):
            await log.append(Draft(f"control.tests.thing.{number}.happened", b"x" * 500, f"id-{number}"))
        whole = await read_range(log, CONTROL)
        backup = io.BytesIO()
        description = await export_stream(connection, CONTROL, backup.write)
        with pytest.raises(CannotCopy, match=CONTROL):
            await import_stream(connection, CONTROL, description, io.BytesIO(backup.getvalue()))
        await request(connection, f"STREAM.DELETE.{CONTROL}", {})
        with pytest.raises(CannotCopy, match="does not provide"):
            await export_stream(connection, CONTROL, backup.write)
        with pytest.raises(CannotCopy, match=CONTROL):
            await import_stream(connection, CONTROL, description, io.BytesIO(backup.getvalue()[:-2000]))
        await import_stream(connection, CONTROL, description, io.BytesIO(backup.getvalue()))
        assert await read_range(log, CONTROL) == whole
        await connection.close()

    asyncio.run(work())


def test_a_broker_that_does_not_answer_is_reported(tmp_path, monkeypatch):
    home = Home("test", tmp_path)
    home.write_plan(Plan("test"))
    home.write("ports.json", {"broker": reserved_port()})
    (home.folder("secrets") / "operator.creds").write_text(Authority.create().operator())
    monkeypatch.setattr("services.local.backup.is_running", lambda home: True)
    with pytest.raises(CannotBackUp, match="broker of cluster 'test' does not answer: no connection to"):
        back_up(home, tmp_path / "backup", b"a long key")
