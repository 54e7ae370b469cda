"""Parts of a backup: streams out of one broker and into another, files, and what is refused."""

import asyncio
import io
import shutil
import tarfile
from pathlib import Path

import msgspec
import pytest
from nacl import pwhash

from det_contracts import subjects
from services.kit.credentials import Authority
from services.kit.jetstream_api import request
from services.kit.log import Draft
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from services.kit.log_range import read_range
from services.local.backup import CannotBackUp, Manifest, back_up, decrypt_keys, entry_of, key_box
from services.local.home import Home, Plan
from services.local.restore import METRICS_STORE, _write_plan, restore, verify_backup
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


CHECKPOINT = "0f6c2f8e-9a57-4d7e-8a51-1d2f3a4b5c6d"
OTHER = "1f6c2f8e-9a57-4d7e-8a51-1d2f3a4b5c6d"
OPTIONAL = {
    f"checkpoints/{CHECKPOINT}/model/weights.pt": f"checkpoint {CHECKPOINT}",
    "checkpoints/tensorboard/events.1": "the file tensorboard/events.1 of the checkpoint storage",
    "blobs/ab/abcd": "the submitted code abcd",
    "metrics.db": "curves and log lines of metrics.db that REPORTS and LOGS no longer hold",
}
NEEDED = ("streams/CONTROL", "keys.box", "plan.json", "archive/ab/abcd")
FINE = (f"checkpoints/{CHECKPOINT}/metadata.json", f"checkpoints/{OTHER}/model/weights.pt", "blobs/cd/cdef")


@pytest.fixture
def backup(tmp_path):
    """A backup with a file of each sort, whose log and keys nobody reads."""
    folder = tmp_path / "backup"
    for name in (*OPTIONAL, *NEEDED, *FINE):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"this is {name}")
    (folder / "plan.json").write_text(f'{{"settings": {{"{METRICS_STORE}": "/copies"}}}}')
    manifest = Manifest(
        made_at=0.0,
        cluster="first",
        salt=b"s" * 16,
        streams={},
        checkpoints=str(tmp_path / "storage"),
        files={name: entry_of(folder / name) for name in (*OPTIONAL, *NEEDED, *FINE)},
    )
    (folder / "manifest.json").write_bytes(msgspec.json.encode(manifest))
    return folder


@pytest.fixture
def restored(backup, tmp_path, monkeypatch):
    """Restores it, but for the broker and the keys; returns what is lost."""
    packed = io.BytesIO()
    tarfile.open(fileobj=packed, mode="w").close()
    monkeypatch.setattr("services.local.restore.key_box", lambda *_: None)
    monkeypatch.setattr("services.local.restore.decrypt_keys", lambda *_: packed.getvalue())
    monkeypatch.setattr("services.local.restore._import_log", lambda *_: None)
    return lambda **options: restore(Home("second", tmp_path), backup, b"a long key", **options)


def damage(file):
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


def files_of(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("harm", [damage, Path.unlink], ids=["a flipped bit", "a missing file"])
@pytest.mark.parametrize("name", OPTIONAL)
def test_a_damaged_file_is_named_with_what_is_lost_without_it(name, harm, backup, restored, tmp_path):
    harm(backup / name)
    with pytest.raises(CannotBackUp, match=r"nothing was done.*--without-damaged") as refusal:
        restored()
    assert f"damaged: {name};" in str(refusal.value)
    assert str(refusal.value).endswith(f"and lose {OPTIONAL[name]}")
    assert set(tmp_path.iterdir()) == {backup}


@pytest.mark.parametrize("name", OPTIONAL)
def test_everything_else_is_restored_without_it(name, backup, restored, tmp_path):
    damage(backup / name)
    assert restored(without_damaged=True) == [OPTIONAL[name]]
    home, storage = Home("second", tmp_path), tmp_path / "storage"
    there = {f"checkpoints/{path}" for path in files_of(storage)}
    there |= {f"blobs/{path}" for path in files_of(home.path / "blobs")}
    there |= files_of(home.path / "databases")
    lacking = {name, FINE[0]} if CHECKPOINT in name else {name}
    assert there == {*OPTIONAL, *FINE} - lacking
    is_copied = METRICS_STORE in home.read("plan.json")["settings"]
    assert is_copied is (name != "metrics.db"), "a copy that is not there would be waited for"


def test_all_that_is_damaged_is_left_out_at_once(backup, restored):
    for name in OPTIONAL:
        damage(backup / name)
    assert restored(without_damaged=True) == list(OPTIONAL.values())


@pytest.mark.parametrize("name", NEEDED)
def test_what_a_cluster_needs_is_not_left_out(name, backup, restored, tmp_path):
    damage(backup / name)
    damage(backup / "blobs/ab/abcd")
    with pytest.raises(CannotBackUp, match=f"damaged: {name}, without which there is no cluster"):
        restored(without_damaged=True)
    assert set(tmp_path.iterdir()) == {backup}


def test_a_disk_that_fills_up_leaves_nothing_behind(backup, restored, tmp_path, monkeypatch):
    copy = shutil.copytree

    def fill_up(source, target, *arguments, **options):
        copy(source, target, *arguments, **options)
        if Path(source).name == "checkpoints":
            raise OSError("No space left on device")

    monkeypatch.setattr("shutil.copytree", fill_up)
    with pytest.raises(OSError, match="No space"):
        restored()
    assert files_of(tmp_path) == {f"backup/{name}" for name in files_of(backup)}


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
