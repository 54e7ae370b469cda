"""What processes of trials use reaches their metrics, also where a GPU, a process or the gateway is gone."""

import asyncio
import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace

import msgspec
import pytest

from det_contracts.events.worker import Slot
from services.kit import host_processes
from services.kit.settings import BadSettings
from worker import process, utilisation
from worker.settings import WorkerSettings
from worker.utilisation import reporting
from worker.utilisation.gpus import Gpus, load_nvml
from worker.utilisation.reporting import Watcher, batches, poster
from worker.utilisation.sampling import PAGE_BYTES, TICKS_S, Sampler, processes_of

GIB = 2**30


class Nvml:
    """Two GPUs, of which the second has fallen off the bus."""

    def nvmlDeviceGetHandleByUUID(self, uuid):
        return {"GPU-1": 1}[uuid]

    def nvmlDeviceGetUtilizationRates(self, handle):
        return SimpleNamespace(gpu=87)

    def nvmlDeviceGetMemoryInfo(self, handle):
        return SimpleNamespace(used=6 * GIB)

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        mine = SimpleNamespace(pid=11, usedGpuMemory=2 * GIB)
        return [mine, SimpleNamespace(pid=12, usedGpuMemory=None), SimpleNamespace(pid=99, usedGpuMemory=GIB)]


class Proc:
    """A /proc of processes that a test sets, and a clock."""

    def __init__(self, folder):
        self.folder, self.now = folder, 100.0

    def clock(self):
        return self.now

    def has(self, pid, cpu_s, pages, rank=None, started=5):
        here = self.folder / str(pid)
        here.mkdir(exist_ok=True)
        fields = ["S"] + ["0"] * 30
        fields[11], fields[19], fields[21] = str(round(cpu_s / TICKS_S)), str(started), str(pages)
        (here / "stat").write_text(f"{pid} (a ) odd (name) " + " ".join(fields))
        environment = [b"A=1", b"LOCAL_RANK=7"] + ([b"RANK=%d" % rank] if rank is not None else [])
        (here / "environ").write_bytes(b"\0".join(environment))


@pytest.fixture
def proc(tmp_path):
    return Proc(tmp_path)


def sampler(proc, nvml=None, uuids=()):
    return Sampler("w", Gpus(nvml), uuids, proc.folder, proc.clock)


def test_cpu_and_memory_are_reported_by_rank_and_for_the_rest(proc):
    run_sampler = sampler(proc)
    proc.has(10, 5.0, 10)
    proc.has(11, 1.0, 1000, rank=0)
    proc.has(12, 2.0, 2000, rank=0)
    assert run_sampler.sample({10, 11, 12}) == pytest.approx(
        {"memory_gb.w": 10 * PAGE_BYTES / 1e9, "memory_gb.rank0": 3000 * PAGE_BYTES / 1e9}
    )
    proc.now += 10
    proc.has(11, 6.0, 1000, rank=0)
    proc.has(12, 12.0, 2000, rank=0)
    proc.has(13, 3.0, 1, rank=12)
    figures = run_sampler.sample({10, 11, 12, 13})
    assert {name: value for name, value in figures.items() if name.startswith("cpu")} == pytest.approx(
        {"cpu_cores.w": 0.0, "cpu_cores.rank0": 1.5, "cpu_cores.rank12": 0.3}
    )


def test_an_ended_process_or_a_reused_id_is_ignored(proc):
    run_sampler = sampler(proc)
    proc.has(11, 50.0, 1, rank=0)
    run_sampler.sample({11, 404})
    proc.now += 10
    proc.has(11, 2.0, 1, rank=3, started=6)
    figures = run_sampler.sample({11, 404})
    assert figures["cpu_cores.rank3"] == pytest.approx(0.2)
    assert "cpu_cores.rank0" not in figures
    assert run_sampler.sample(set()) == {}


def test_gpus_are_reported_by_index_in_the_run_and_memory_by_process(proc):
    proc.has(11, 1.0, 1, rank=1)
    proc.has(12, 1.0, 1, rank=2)
    figures = sampler(proc, Nvml(), ["GPU-1", "GPU-2"]).sample({11, 12})
    assert {name: value for name, value in figures.items() if name.startswith("gpu")} == {
        "gpu_percent.w.0": 87.0, "gpu_memory_gb.w.0": 6 * GIB / 1e9, "gpu_memory_gb.rank1": 2 * GIB / 1e9,
    }  # fmt: skip


def test_without_a_driver_there_is_nothing_of_gpus(proc, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert load_nvml() is None
    assert Gpus(None).sample("w", ["GPU-1"], {}) == {}


def test_the_processes_of_a_run_are_found_and_seen_by_proc_itself():
    code = "import sys; print('up', flush=True); sys.stdin.read()"
    environment = os.environ | {"RANK": "4"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(
        [sys.executable, "-c", code], env=environment, start_new_session=True, **pipes
    ) as child:
        child.stdout.readline()
        pids = processes_of(child.pid, child.pid)
        assert child.pid in pids
        assert Sampler("w", Gpus(None)).sample(pids)["memory_gb.rank4"] > 0.001


def test_a_request_names_each_figure_with_the_seconds_since_the_run_began():
    (batch,) = batches({"cpu_cores.rank0": 1.5}, 7, "w", 1000.0, 1012.9)["batches"]
    assert (batch["values"], batch["batches"], batch["labels"]["name"]) == ([1.5], [12], "cpu_cores.rank0")
    assert (batch["labels"]["trialId"], batch["labels"]["metricType"]) == (7, "PROFILER_METRIC_TYPE_PROCESS")
    assert batch["timestamps"] == ["1970-01-01T00:16:52.900000+00:00"]


def run_of(folder, *, token="t", trial=7):  # noqa: S107
    """A run whose command is this process."""
    me = process.ProcessIdentity(os.getpid(), host_processes.started(os.getpid()))
    folder.mkdir(exist_ok=True)
    (folder / "running.json").write_bytes(msgspec.json.encode(process.Running(me, me)))
    briefing = SimpleNamespace(token=token, trial=None if trial is None else SimpleNamespace(trial_id=trial))
    order = SimpleNamespace(briefing=briefing, started_at=0.0)
    slots = (Slot(0, "cuda", "GPU-1", "H"), Slot(1, "cpu", "cpu-1", "x"))
    return SimpleNamespace(id=folder.name, order=order, folder=folder, devices=slots, done=asyncio.Event())


def test_only_runs_of_trials_that_go_on_are_reported_each_with_its_own_token(tmp_path, monkeypatch):
    monkeypatch.setattr(reporting, "processes_of", lambda shim, command, _: {command, shim, os.getppid()})
    sent = []
    watcher = Watcher("w", Gpus(Nvml()), lambda body, token: sent.append((token, body)))
    runs = {name: run_of(tmp_path / name, token=name) for name in ("a", "ended", "gone")}
    runs["ended"].done.set()
    (tmp_path / "gone" / "running.json").unlink()
    runs |= {"command": run_of(tmp_path / "command", trial=None), "none": run_of(tmp_path / "none", token="")}
    runs["old"] = run_of(tmp_path / "old")
    runs["old"].order.briefing = None
    asyncio.run(watcher.sample_all(runs))
    ((token, body),) = sent
    assert token == "a"
    names = {batch["labels"]["name"] for batch in body["batches"]}
    assert {"memory_gb.w", "gpu_percent.w.0"} <= names


def test_an_unreachable_gateway_is_logged_once_and_holds_up_nothing(tmp_path, monkeypatch):
    logged_errors, answers = [], [OSError("away"), OSError("away"), None, OSError("again")]
    monkeypatch.setattr(reporting.log, "info", lambda name, error: logged_errors.append(error))

    def post(body, token):
        if (answer := answers.pop(0)) is not None:
            raise answer

    watcher = Watcher("w", Gpus(Nvml()), post)
    runs = {"a": run_of(tmp_path / "a")}
    for _ in range(4):
        asyncio.run(watcher.sample_all(runs))
    assert logged_errors == ["away", "again"]


class Gateway(BaseHTTPRequestHandler):
    taken = ()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = 200 if self.headers["Authorization"] == "Bearer good" else 401
        type(self).taken += ((self.path, body, status),)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(b"no")

    def log_message(self, *_):
        pass


def test_requests_go_to_the_gateway_and_a_refusal_is_an_error():
    with ThreadingHTTPServer(("127.0.0.1", 0), Gateway) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        send = poster(WorkerSettings(master_url=f"http://127.0.0.1:{server.server_port}/"))
        send({"batches": []}, "good")
        with pytest.raises(OSError, match="401: no"):
            send({"batches": []}, "bad")
        server.shutdown()
    with pytest.raises(OSError, match="refused"):
        send({}, "good")
    assert Gateway.taken[0] == ("/api/v1/trials/profiler/metrics", {"batches": []}, 200)


def test_a_setting_turns_it_off(monkeypatch):
    monkeypatch.setattr(reporting, "Watcher", None)
    asyncio.run(utilisation.watch(WorkerSettings(worker_sample_s=0.0), "w", {}))


@pytest.mark.parametrize("seconds", [0.5, -1.0])
def test_an_interval_below_a_second_is_refused(seconds):
    with pytest.raises(BadSettings, match="STEADFAST_WORKER_SAMPLE_S"):
        WorkerSettings(worker_sample_s=seconds)
