"""What a host offers, with and without GPUs."""

import sys
import types

import pytest

from det_contracts.events.worker import Slot
from worker import nvidia, slots
from worker.utilisation.gpus import load_nvml


class FakeError(Exception):
    pass


def fake_nvml(devices, *, broken=False, texts=str):
    def init():
        if broken:
            raise FakeError("no driver")

    return types.SimpleNamespace(
        NVMLError=FakeError,
        nvmlInit=init,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: len(devices),
        nvmlDeviceGetHandleByIndex=lambda index: devices[index],
        nvmlDeviceGetUUID=lambda device: texts(device[0]),
        nvmlDeviceGetName=lambda device: texts(device[1]),
    )


GPUS = [("GPU-aa", "NVIDIA H200"), ("GPU-bb", "NVIDIA H200"), ("GPU-cc", "NVIDIA L4")]


@pytest.fixture(autouse=True)
def driver(monkeypatch):
    """The driver's library is one that every host has."""
    monkeypatch.setattr(nvidia, "DRIVER", None)


@pytest.fixture
def gpus(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(GPUS))


@pytest.mark.usefixtures("gpus")
def test_each_gpu_is_a_slot():
    assert [(s.id, s.kind, s.uuid, s.brand) for s in slots.detect_slots()] == [
        (0, "cuda", "GPU-aa", "NVIDIA H200"),
        (1, "cuda", "GPU-bb", "NVIDIA H200"),
        (2, "cuda", "GPU-cc", "NVIDIA L4"),
    ]


def test_bytes_of_older_bindings(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(GPUS[:1], texts=str.encode))
    assert slots.detect_slots()[0].uuid == "GPU-aa"


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize(
    ("visible", "uuids"),
    [("0,2", ["GPU-aa", "GPU-cc"]), ("GPU-b", ["GPU-bb"]), (None, ["GPU-aa", "GPU-bb", "GPU-cc"])],
)
def test_visible_limits_them_and_ids_still_count_from_0(visible, uuids):
    visible_slots = slots.gpus(visible)
    assert [slot.uuid for slot in visible_slots] == uuids
    assert [slot.id for slot in visible_slots] == list(range(len(uuids)))


HELD = (Slot(7, "cuda", "GPU-cc", "NVIDIA L4"), Slot(1, "cuda", "GPU-bb", "NVIDIA H200"))


@pytest.mark.usefixtures("gpus")
def test_a_task_sees_its_gpus_by_the_index_of_the_driver():
    assert slots.visible_devices(HELD) == "2,1"
    assert slots.visible_devices(HELD, counted=True) == "0,1"
    assert slots.visible_devices([Slot(0, "cpu", "cpu-0", "EPYC")]) == ""


def test_a_gpu_that_the_driver_does_not_list_is_seen_by_its_uuid(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(GPUS[:2]))
    assert slots.visible_devices(HELD) == "GPU-cc,GPU-bb"


def test_a_gpu_that_does_not_answer_changes_no_index_of_the_others(monkeypatch):
    nvml = fake_nvml(GPUS)

    def handle(index):
        if index == 0:
            raise FakeError("fell off the bus")
        return GPUS[index]

    nvml.nvmlDeviceGetHandleByIndex = handle
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    assert slots.visible_devices(HELD) == "2,1"
    assert [slot.uuid for slot in slots.gpus("1,2")] == ["GPU-bb", "GPU-cc"]


@pytest.mark.usefixtures("gpus")
def test_none_visible_means_a_cpu_host():
    assert [slot.kind for slot in slots.detect_slots(visible="")] == ["cpu"]


@pytest.mark.usefixtures("gpus")
def test_artificial_slots_win_over_gpus():
    assert [(slot.id, slot.kind, slot.uuid) for slot in slots.detect_slots(artificial=2)] == [
        (0, "cpu", "cpu-0"),
        (1, "cpu", "cpu-1"),
    ]


def test_no_driver_is_one_cpu_slot(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(GPUS, broken=True))
    (slot,) = slots.detect_slots()
    assert slot.kind == "cpu"
    assert slot.brand


def test_no_bindings_is_one_cpu_slot(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert [slot.kind for slot in slots.detect_slots()] == ["cpu"]


def test_without_a_driver_its_bindings_are_not_loaded(monkeypatch):
    monkeypatch.setattr(nvidia, "DRIVER", "libno-driver.so.1")
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    assert [slot.kind for slot in slots.detect_slots()] == ["cpu"]
    assert load_nvml() is None
    assert "pynvml" not in sys.modules


def test_a_negative_number_is_refused():
    with pytest.raises(ValueError, match="-1 slots"):
        slots.detect_slots(artificial=-1)


def test_a_device_that_fails_leaves_the_ids_of_the_others(monkeypatch, tmp_path):
    inventory = slots.Inventory(tmp_path / "slots.json")

    def look(*devices):
        monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(devices))
        return {slot.uuid: slot.id for slot in inventory.scan()}

    assert look(*GPUS) == {"GPU-aa": 0, "GPU-bb": 1, "GPU-cc": 2}
    assert look(*GPUS[1:]) == {"GPU-bb": 1, "GPU-cc": 2}
    assert look(*GPUS) == {"GPU-aa": 0, "GPU-bb": 1, "GPU-cc": 2}
    spare = ("GPU-dd", "NVIDIA L4")
    assert look(spare, *GPUS[:2]) == {"GPU-aa": 0, "GPU-bb": 1, "GPU-dd": 2}
    assert look(*GPUS[:1], GPUS[2], spare) == {"GPU-aa": 0, "GPU-cc": 1, "GPU-dd": 2}


def test_a_device_that_does_not_answer_hides_no_other(monkeypatch):
    nvml = fake_nvml(GPUS)

    def handle(index):
        if index == 0:
            raise FakeError("GPU is lost")
        return GPUS[index]

    nvml.nvmlDeviceGetHandleByIndex = handle
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    assert [slot.uuid for slot in slots.gpus()] == ["GPU-bb", "GPU-cc"]


def test_damaged_notes_count_for_nothing(monkeypatch, tmp_path):
    (tmp_path / "slots.json").write_text("{")
    cpu_slots = slots.Inventory(tmp_path / "slots.json", 3).scan()
    assert [(slot.id, slot.uuid) for slot in cpu_slots] == [(0, "cpu-0"), (1, "cpu-1"), (2, "cpu-2")]
