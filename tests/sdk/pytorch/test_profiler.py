"""What the profiler measures, and when (Trainer spec, section 16)."""

import pytest
import torch

from determined import pytorch
from determined.exec import harness
from determined.pytorch import _profiler
from determined.pytorch._profiler import Profiler
from determined.pytorch._system_metrics import Gpus, Machine
from tests.fixtures.own_time import set_time
from tests.sdk.pytorch.trial_process import TrialProcess
from tests.sdk.pytorch.trials import OneVar

STAT = "cpu  {busy} 0 0 {idle} 0 0 0 0 {busy} 0\ncpu0 1 2 3 4\n"
MEMORY = "MemTotal: 32000000 kB\nMemAvailable:   2000000 kB\n"
NETWORK = "Inter-|\n face |\n    lo: 9 0 0 0 0 0 0 0 9 0\n  eth0:{got} 0 0 0 0 0 0 0 {sent} 0\n"
DISKS = """ 7 0 loop0 9 0 9 0 9 0 9 0
 8 0 sda {n} 0 {read} 0 {n} 0 {wrote} 0
 8 1 sda1 {n} 0 {read} 0 {n} 0 {wrote} 0
 259 0 nvme0n1 {n} 0 {read} 0 {n} 0 {wrote} 0
 259 1 nvme0n1p2 {n} 0 {read} 0 {n} 0 {wrote} 0
"""


@pytest.fixture
def proc(tmp_path):
    """A /proc whose counters a test sets."""
    folder = tmp_path / "proc"
    (folder / "net").mkdir(parents=True)

    def write(busy, idle, got, sent, n, read, wrote):
        (folder / "stat").write_text(STAT.format(busy=busy, idle=idle))
        (folder / "meminfo").write_text(MEMORY)
        (folder / "net" / "dev").write_text(NETWORK.format(got=got, sent=sent))
        (folder / "diskstats").write_text(DISKS.format(n=n, read=read, wrote=wrote))

    write(100, 100, 0, 0, 0, 0, 0)
    return folder, write


class NoGpus:
    def sample(self):
        return {}


def test_rates_since_the_sample_before(proc):
    folder, write = proc
    now = [10.0]
    machine = Machine(folder, lambda: now[0], NoGpus())
    now[0] = 12.0
    write(130, 110, 10**9, 5 * 10**8, 50, 1000, 400)
    sample = machine.sample()
    assert sample == pytest.approx(
        {
            "cpu_util_simple": 75.0,
            "free_memory": 2.048,
            "net_throughput_recv": 4.0,
            "net_throughput_sent": 2.0,
            # Two whole disks; partitions and loops are parts of others.
            "disk_iops": 100.0,
            "disk_throughput_read": 512000.0,
            "disk_throughput_write": 204800.0,
        }
    )
    now[0] = 13.0
    assert machine.sample()["disk_iops"] == 0.0


def test_a_machine_without_proc(tmp_path):
    assert Machine(tmp_path / "nothing", lambda: 1.0, NoGpus()).sample() == {}


def test_this_machine():
    sample = Machine().sample()
    assert sample["free_memory"] > 0
    assert 0 <= sample.get("cpu_util_simple", 0) <= 100


def test_gpus_that_do_not_answer_are_left_out():
    class Nvml:
        def nvmlDeviceGetUtilizationRates(self, handle):
            if handle == "ill":
                raise OSError
            return type("Rates", (), {"gpu": 40})

        def nvmlDeviceGetMemoryInfo(self, handle):
            return type("Memory", (), {"free": 7})

    gpus = Gpus()
    gpus._handles, gpus._nvml = [("A", "well"), ("B", "ill")], Nvml()
    assert gpus.sample() == {"gpu_util.A": 40.0, "gpu_free_memory.A": 7.0}


def test_between_two_batches_and_for_five_minutes(monkeypatch):
    now = [0.0]
    set_time(monkeypatch, _profiler, monotonic=lambda: now[0])

    def active(profiler, batches):
        states = []
        for batch in batches:
            profiler.at_batch(batch)
            states.append(profiler.active)
        return states

    assert active(Profiler(True, 2, 4), range(7)) == [False, False, True, True, True, False, False]
    assert active(Profiler(False, 0, None), range(2)) == [False, False]
    # After a restart the first batch is another one.
    assert active(Profiler(True, 2, None), range(3, 6)) == [False] * 3
    long = Profiler(True, 0, None)
    assert active(long, [0]) == [True]
    now[0] = 301.0
    assert active(long, [1, 2]) == [False, False]


MODEL_DEF = """
from determined import pytorch
from tests.sdk.pytorch.trials import OneVar

class Callback(pytorch.PyTorchCallback):
    def on_training_epoch_start(self, epoch_idx):
        pass

class MyTrial(OneVar):
    def __init__(self, context):
        super().__init__(context, records=8)

    def build_callbacks(self):
        return {"mine": Callback()}
"""


@pytest.fixture
def process(monkeypatch, folder):
    for name in (*harness.BACKENDS, "RANK"):
        monkeypatch.delenv(name, raising=False)
    (folder / "code" / "profiled_def.py").write_text(MODEL_DEF)
    monkeypatch.syspath_prepend(str(folder / "code"))
    return TrialProcess(monkeypatch, folder)


def test_reports_of_a_trial(process, monkeypatch):
    monkeypatch.setattr(_profiler, "SYSTEM_EVERY_S", 0.0)
    profiling = {"enabled": True, "begin_on_batch": 2, "end_after_batch": 5}
    process.become(lengths=(12,), config={"profiling": profiling, "scheduling_unit": 2})
    harness.main(["profiled_def:MyTrial"])
    timings = process.reported("profile.timing")
    assert [steps for steps, _ in timings] == [4, 6]
    expected = {"dataloader_next", "to_device", "train_batch", "train_batch.backward", "from_device"}
    expected |= {"train_batch.sync_optimizers", "average_training_metrics", "reduce_metrics"}
    for _, series in timings:
        assert expected <= set(series)
        assert all(value >= 0 for value in series.values())
        assert series["train_batch"] >= series["train_batch.backward"]
    assert any("callbacks.Callback.on_training_epoch_start" in series for _, series in timings)
    throughput = process.reported("profile.throughput")
    assert [steps for steps, _ in throughput] == [4, 6]
    for (_, speed), (_, series) in zip(throughput, timings, strict=True):
        # Two batches of two records in the time that was spent on them.
        assert speed["samples_per_second"] == pytest.approx(4 / series["train_batch"])
    system = process.reported("profile.system")
    assert [steps for steps, _ in system] == [4, 6]
    assert all(series["free_memory"] > 0 for _, series in system)


def test_nothing_is_reported_unasked(process):
    process.become(lengths=(4,), config={"scheduling_unit": 2})
    harness.main(["profiled_def:MyTrial"])
    assert not [group for group in process.transport.kinds() if group.startswith("profile")]


@pytest.mark.filterwarnings("ignore:.*Profiler clears events:UserWarning")
def test_a_trace_of_the_whole_run(folder):
    """One file for each active period of the schedule, not one for each batch (D13)."""
    with pytorch.init(enable_tensorboard_logging=False) as context:
        trial = OneVar(context)
        context.set_profiler(
            activities=[torch.profiler.ProfilerActivity.CPU],
            schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2),
        )
        pytorch.Trainer(trial, context).fit(max_length=pytorch.Batch(10))
    assert len(list(folder.rglob("*.pt.trace.json"))) == 2
