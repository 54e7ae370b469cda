"""TensorBoard in AUTO mode: event files in the public format, and their way into storage."""

import logging
import math
import pathlib
import struct
import tempfile
import time

import pytest

from determined import core
from determined.core import _tensorboard_auto
from determined.core._tensorboard import TensorboardUpload, tensorboard_path
from determined.core._tensorboard_auto import AutomaticTensorboard, events_of
from determined.core._tensorboard_events import EventFile, masked_crc32c
from determined.exec.tensorboard import Source, fetch_all
from determined.storage import SharedFSStorageManager
from determined.tensorboard.util import get_rank_aware_path
from determined.transport.protocol import MetricReport
from tests.sdk.core.fake_transport import FakeTransport

STORED = pathlib.Path("storage/cluster-1/tensorboard/experiment/3/trial/7")


def fields_of(data):
    """The fields of a protocol buffer, in order: (number, value)."""
    at, fields = 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            value = varint()
        elif key & 7 == 2:
            length = varint()
            value = data[at : at + length]
            at += length
        else:
            length, form = {1: (8, "<d"), 5: (4, "<f")}[key & 7]
            (value,) = struct.unpack(form, data[at : at + length])
            at += length
        fields.append((key >> 3, value))
    return fields


def records_of(path):
    data, records = path.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        content = data[12 : 12 + length]
        assert struct.unpack("<I", data[8:12])[0] == masked_crc32c(data[:8])
        assert struct.unpack("<I", data[12 + length : 16 + length])[0] == masked_crc32c(content)
        records.append(dict(fields_of(content)))
        data = data[16 + length :]
    return records


def scalars_of(path):
    """(step, tag, value) of everything in a file."""
    first, *others = records_of(path)
    assert first[3] == b"brain.Event:2"
    scalars = []
    for event in others:
        for number, content in fields_of(event[5]):
            assert number == 1
            value = dict(fields_of(content))
            step = event[2] - (1 << 64 if event[2] >> 63 else 0)
            scalars.append((step, value[1].decode(), value[2]))
    return scalars


def test_the_checksum_is_crc32c():
    # The check value of CRC-32C that catalogues give for these digits, rotated and shifted.
    crc = 0xE3069283
    assert masked_crc32c(b"123456789") == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_scalars_come_back_as_written(tmp_path):
    file = EventFile(tmp_path / "new")
    file.write(12.5, 300, {"Determined/loss": 0.5, "Determined/" + "n" * 200: -1e300})
    file.write(13.5, -1, {"ä": math.nan, "big": 10**400})
    file.close()
    assert "tfevents" in file.path.name
    scalars = scalars_of(file.path)
    assert scalars[:2] == [(300, "Determined/loss", 0.5), (300, "Determined/" + "n" * 200, -math.inf)]
    assert (scalars[2][:2], math.isnan(scalars[2][2])) == ((-1, "ä"), True)
    assert scalars[3] == (-1, "big", math.inf)
    assert [event[1] for event in records_of(file.path)[1:]] == [12.5, 13.5]
    second = EventFile(tmp_path / "new")
    second.close()
    assert second.path != file.path


REPORTS = {
    "names": (
        MetricReport("training", 4, {"loss": 1, "note": "NaNs", "list": [1], "flag": True, "bad": "NaN"}),
        [(4, ["Determined/loss", "Determined/bad"])],
    ),
    "validation": (
        MetricReport("validation", 4, {"loss": 1, "val_acc": 2, "validation": 3}),
        [(4, ["Determined/val_loss", "Determined/val_acc", "Determined/validation"])],
    ),
    "batches": (
        MetricReport("training", 10, {"loss": 9, "lr": 1}, [{"loss": 1}, {"text": "x"}, {"loss": 3}]),
        [(7, ["Determined/loss"]), (9, ["Determined/loss"]), (10, ["Determined/lr"])],
    ),
    "other groups": (MetricReport("inference", 4, {"loss": 1}), []),
    "nothing to draw": (MetricReport("training", 4, {"text": "x"}), []),
}


@pytest.mark.parametrize("name", REPORTS)
def test_what_of_a_report_is_drawn(name):
    report, expected = REPORTS[name]
    assert [(step, list(scalars)) for step, scalars in events_of(report)] == expected


def test_a_trial_has_its_curves_in_storage(on_cluster, tmp_path):
    transport = FakeTransport()
    on_cluster(transport)
    with core.init() as context:
        path = context.train.get_tensorboard_path()
        path.mkdir()
        (path / "own.tfevents.1").write_text("of the script")
        context.train.report_training_metrics(1, {"loss": 0.5})
        context.train.report_validation_metrics(1, {"loss": 0.25})
    assert transport.kinds() == ["training", "validation"]
    own, curves = sorted((tmp_path / STORED).iterdir(), key=lambda p: p.name.startswith("events"))
    assert own.read_text() == "of the script"
    assert scalars_of(curves) == [(1, "Determined/loss", 0.5), (1, "Determined/val_loss", 0.25)]
    assert [p.name for p in path.iterdir()] == ["own.tfevents.1"], "only files of the script stay"


def test_nothing_to_store_leaves_nothing(on_cluster, tmp_path):
    on_cluster(FakeTransport())
    with core.init() as context:
        pass
    assert not (tmp_path / STORED).exists()
    assert not context.train.get_tensorboard_path().exists()


def test_by_hand_nothing_is_written(on_cluster, tmp_path):
    on_cluster(FakeTransport())
    with core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context:
        context.train.report_training_metrics(1, {"loss": 0.5})
        assert not context.train.get_tensorboard_path().exists()
        context.train.get_tensorboard_path().mkdir()
        (context.train.get_tensorboard_path() / "mine").write_text("1")
        context.train.upload_tensorboard_files()
    assert [p.name for p in (tmp_path / STORED).iterdir()] == ["mine"]


def test_event_files_go_away_with_their_run(fresh_info, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "of all"))
    name = "tensorboard-1.c0ffee.1-0"
    assert tensorboard_path("1.c0ffee.1") == fresh_info.parent / name
    monkeypatch.delenv("DET_INFO_DIR")
    assert tensorboard_path("1.c0ffee.1") == tmp_path / "of all" / name


def test_files_are_sent_while_training_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(_tensorboard_auto, "PERIOD_S", 0.02)
    store = tmp_path / "store"
    upload = TensorboardUpload(SharedFSStorageManager(store), tmp_path / "events", "trial", 0)
    automatic = AutomaticTensorboard(tmp_path / "events", upload)
    try:
        for step in (1, 2):
            automatic.add(MetricReport("training", step, {"loss": step}))
            eventually(lambda step=step: steps_in(store) == list(range(1, step + 1)))
    finally:
        automatic.close()
        automatic.close()


def eventually(true, within_s=60):
    deadline = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def steps_in(store):
    return [step for file in store.rglob("events*") for step, _, _ in scalars_of(file)]


def test_a_store_that_refuses_is_a_warning(tmp_path, caplog):
    (tmp_path / "store").write_text("a file")
    upload = TensorboardUpload(SharedFSStorageManager(tmp_path / "store"), tmp_path / "events", "trial", 0)
    automatic = AutomaticTensorboard(tmp_path / "events", upload)
    with caplog.at_level(logging.WARNING):
        automatic.add(MetricReport("training", 1, {"loss": 1.0}))
        automatic.close()
    assert "TensorBoard files could not be stored" in caplog.text
    assert list((tmp_path / "events").iterdir())


RANKED = {
    "h.memory_profile.json.gz": "h#3.memory_profile.json.gz",
    "w.1674.pt.trace.json": "w#3.1674.pt.trace.json",
    "w.1674.pt.trace.json.gz": "w#3.1674.pt.trace.json.gz",
    "h.xplane.pb": "h#3.xplane.pb",
    "events.out.tfevents.1": "events.out.tfevents.1",
    "trace.json": "trace.json",
}


@pytest.mark.parametrize("name", RANKED)
def test_files_of_a_profiler_carry_the_rank(name):
    assert get_rank_aware_path(pathlib.Path("a/b", name), 3) == pathlib.Path("a/b", RANKED[name])


def test_files_that_are_being_stored_again_are_shown_later_and_hold_up_no_others(tmp_path, caplog):
    storage, (busy, calm) = SharedFSStorageManager(tmp_path / "storage"), ("trial/1", "trial/2")
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "e").write_text("1")
    for stored in (busy, calm):
        storage.upload(tmp_path / "events", stored)

    class Changing(SharedFSStorageManager):
        failures = 1

        def download(self, *arguments, **named):
            if self.failures:
                self.failures -= 1
                raise OSError("object e was replaced while it was fetched")
            super().download(*arguments, **named)

    scratch = tmp_path / "scratch"
    scratch.mkdir()
    sources = [
        Source(manager, stored, tmp_path / "shown" / stored, scratch)
        for manager, stored in ((Changing(tmp_path / "storage"), busy), (storage, calm))
    ]
    fetch_all(sources)
    assert "object e was replaced while it was fetched; trying again" in caplog.text
    assert [p.parent.name for p in (tmp_path / "shown").rglob("e")] == ["2"]
    fetch_all(sources)
    assert (tmp_path / "shown" / busy / "e").read_text() == "1"
