"""The cost of moving checkpoints, one large file or many small ones, to and from a directory and S3.

python -m benchmarks.checkpoints [--quick] [MEGABYTES] [FILES]

Every transfer runs in a process of its own, whose peak memory is taken; the best of three rounds counts.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from benchmarks.kit import raw_s3
from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.table import row
from determined.core import DummyCheckpointContext, DummyDistributedContext
from determined.storage import S3StorageManager, SharedFSStorageManager, StorageManager
from tests.fixtures.s3_server import BUCKET, KEY, SECRET, s3_server

SMALL_BYTES = 100_000
BARE_THREADS = 8
STEP_S = 0.01
SERVER = multiprocessing.get_context("forkserver")
# Imported once for all measured processes.
SERVER.set_forkserver_preload(["determined.core", "determined.storage", "tests.fixtures.s3_server"])

if TYPE_CHECKING:
    from minio import Minio

Work = Callable[[], object]
"""Something to time; it may return its own measurement in seconds."""


@dataclass(frozen=True)
class Size:
    megabytes: int = 1000
    files: int = 2000
    rounds: int = 3
    usual_s: float = 2.0
    """How long training is watched before and after an upload."""


def make_sources(root: Path, megabytes: int, files: int) -> dict[str, Path]:
    """Two checkpoints that do not compress."""
    large, small = root / "large", root / "small"
    large.mkdir()
    small.mkdir()
    with open(large / "weights.bin", "wb") as file:
        for _ in range(megabytes):
            file.write(os.urandom(1_000_000))
    for n in range(files):
        (small / f"{n:05}.bin").write_bytes(os.urandom(SMALL_BYTES))
    return {f"{megabytes:,} MB in one file": large, f"{files:,} files of 100 kB": small}


def _child(work: Work, answer: Connection) -> None:
    began = time.perf_counter()
    measured_s = work()
    took = measured_s if isinstance(measured_s, float) else time.perf_counter() - began
    # Not ru_maxrss: a new process inherits that of its parent.
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    answer.send((took, int(peak[1]) / 1024 if peak else float("nan")))


def race(rounds: int, works: dict[str, tuple[Work, Path]]) -> dict[str, tuple[float, float]]:
    """Best time in seconds and peak memory in MiB of each; they take turns, since the machine is shared.

    The directory beside each work is emptied after it.
    """
    measurements: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, (work, filled) in works.items():
            measurements[name].append(_apart(work))
            empty(filled)
    return {
        name: (min(t for t, _ in each), max(peak for _, peak in each)) for name, each in measurements.items()
    }


def _apart(work: Work) -> tuple[float, float]:
    receiving, sending = SERVER.Pipe(duplex=False)
    process = SERVER.Process(target=_child, args=(work, sending))
    process.start()
    sending.close()
    measurement: tuple[float, float] = receiving.recv()
    process.join()
    return measurement


def bare_client(url: str) -> Minio:
    """The plain minio client."""
    from minio import Minio

    return Minio(url.removeprefix("http://"), KEY, SECRET, secure=False, region="us-east-1")


def bare_up(url: str, source: Path, parts: int) -> None:
    """Upload files one after another in `parts` parallel parts, or many of them at once."""
    client = bare_client(url)

    def put(path: Path) -> None:
        client.fput_object(
            BUCKET, f"bare/{path.name}", str(path), part_size=16 << 20, num_parallel_uploads=parts
        )

    each = files_of(source)
    if len(each) == 1:
        put(each[0])
        return
    with ThreadPoolExecutor(BARE_THREADS) as pool:
        list(pool.map(put, each))


def bare_down(url: str, names: list[str], target: Path, threads: int) -> None:
    """Download whole objects, one stream each."""
    client = bare_client(url)

    def get(name: str) -> None:
        client.fget_object(BUCKET, f"bare/{name}", str(target / name))

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(get, names))


def raw_down(url: str, sizes: dict[str, int], target: Path, keeps: bool) -> float:
    """Seconds for ranges over bare sockets, unchecked, written or discarded; excludes signing."""
    client, parts = bare_client(url), urlsplit(url)
    signed = {
        name: (client.get_presigned_url("GET", BUCKET, f"bare/{name}"), size) for name, size in sizes.items()
    }
    pieces = raw_s3.pieces_of(signed, target)
    address = (str(parts.hostname), int(parts.port or 80))
    began = time.perf_counter()
    raw_s3.fetch(address, pieces, keeps)
    return time.perf_counter() - began


def store(place: str) -> StorageManager:
    """A directory, or the bucket behind a URL; created in the process that uses it."""
    return S3StorageManager(BUCKET, KEY, SECRET, place) if "://" in place else SharedFSStorageManager(place)


def up(place: str, source: Path) -> str:
    """What `upload` of the Core API does."""
    return DummyCheckpointContext(DummyDistributedContext(), store(place)).upload(source)


def down(place: str, storage_id: str, target: Path) -> None:
    """What `download` of the Core API does."""
    DummyCheckpointContext(DummyDistributedContext(), store(place)).download(storage_id, target)


def empty(root: Path) -> None:
    """Remove everything below a directory."""
    for path in root.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def files_of(source: Path) -> list[Path]:
    """The files of a source, without those that `upload` adds."""
    return [path for path in source.iterdir() if path.suffix == ".bin"]


def size_of(source: Path) -> int:
    """Size of a source in bytes."""
    return sum(path.stat().st_size for path in files_of(source))


def directory_rows(rounds: int, scratch: Path, name: str, source: Path) -> None:
    """To and from a directory, next to a plain copy."""
    room, storage, back = (scratch / part for part in ("room", "kept", "back"))
    for part in (room, storage, back):
        part.mkdir()
    stored = up(str(storage), source)
    measurements = race(
        rounds,
        {
            "plain": (partial(shutil.copytree, source, back / "copy"), back),
            "up": (partial(up, str(room), source), room),
            "down": (partial(down, str(storage), stored, back / "down"), back),
        },
    )
    size, plain = size_of(source), measurements["plain"][0]
    rate_row(f"plain copy, {name}", size, measurements["plain"])
    rate_row(
        f"up to a directory, {name}",
        size,
        measurements["up"],
        f"{plain / measurements['up'][0]:.2f} x plain copy; ",
    )
    rate_row(
        f"down from a directory, {name}",
        size,
        measurements["down"],
        f"{plain / measurements['down'][0]:.2f} x plain copy; ",
    )
    empty(scratch)


def rate_row(
    measure: str, size: int, measurement: tuple[float, float], ratio: str = "", aim: str = ""
) -> None:
    """One row with a rate and its peak memory."""
    took, peak_mib = measurement
    row(measure, size / took / 1e6, "MB/s", aim, f"{ratio}{peak_mib:.0f} MiB")


def up_rows(rounds: int, name: str, source: Path, bucket: Path, url: str) -> None:
    """To S3, next to the client alone: with sequential and with parallel parts."""
    ways = {parts: partial(bare_up, url, source, parts) for parts in (1, 4)}
    if len(files_of(source)) > 1:
        del ways[4]
    works = {f"bare {parts}": (work, bucket) for parts, work in ways.items()}
    measurements = race(rounds, works | {"ours": (partial(up, url, source), bucket)})
    ours, size = measurements.pop("ours"), size_of(source)
    best = min(measurements.values())
    rate_row(f"bare client up, the best way, {name}", size, best)
    rate_row(f"up to S3, {name}", size, ours, f"{best[0] / ours[0]:.2f} x bare; ", ">= 0.9 x bare")


def down_rows(rounds: int, name: str, source: Path, back: Path, url: str) -> None:
    """From S3, next to the client alone: one object after another, and eight at once."""
    bare_up(url, source, 4)
    stored = up(url, source)
    names = [path.name for path in files_of(source)]
    ways = {threads: partial(bare_down, url, names, back, threads) for threads in (1, BARE_THREADS)}
    if len(names) == 1:
        del ways[BARE_THREADS]
    works: dict[str, tuple[Work, Path]] = {
        f"bare client down, streams: {threads}": (work, back) for threads, work in ways.items()
    }
    sizes = {path.name: path.stat().st_size for path in files_of(source)}
    for keeps, end in ((True, "unchecked"), (False, "thrown away")):
        works[f"bare sockets down, {end}"] = (partial(raw_down, url, sizes, back, keeps), back)
    measurements = race(rounds, works | {"ours": (partial(down, url, stored, back / "down"), back)})
    ours, size = measurements.pop("ours"), size_of(source)
    for way, took in measurements.items():
        rate_row(f"{way}, {name}", size, took)
    stream, raw = (
        measurements[way][0] / ours[0]
        for way in ("bare client down, streams: 1", "bare sockets down, unchecked")
    )
    ratio = f"{stream:.1f} x one stream, {raw:.2f} x bare sockets; "
    rate_row(f"down from S3, {name}", size, ours, ratio, ">= 5 x one stream")


def wait_for_a_device() -> None:
    """A training step on a device: hardly any work for this process."""
    time.sleep(STEP_S)


def keep_a_core_busy() -> None:
    """A training step on this processor."""
    until = time.perf_counter() + STEP_S
    while time.perf_counter() < until:
        pass


def background_rows(size: Size, source: Path, url: str) -> None:
    """What training loses while a checkpoint goes to S3 in the background, beyond its usual losses."""
    checkpoint = DummyCheckpointContext(DummyDistributedContext(), store(url))
    began = time.perf_counter()
    checkpoint.upload(source)
    alone = time.perf_counter() - began
    row(f"upload of {size_of(source) / 1e6:,.0f} MB that training waits for", alone, "s")
    for step, name in ((wait_for_a_device, "waits for a device"), (keep_a_core_busy, "keeps a core busy")):
        rounds = sorted(_beside(step, checkpoint, source, size.usual_s) for _ in range(size.rounds))
        share, took, called, inside = rounds[size.rounds // 2]
        row(
            f"the same in the background, lost by training that {name}",
            share * took * 1e3,
            "ms",
            "< 5 % of the upload",
            f"{share:.1%} of its {took:.1f} s; the call took {called * 1e3:.0f} ms; "
            f"{inside * 1e3:.0f} ms of processor time in the training process",
        )


def _beside(
    step: Work, checkpoint: DummyCheckpointContext, source: Path, usual_s: float
) -> tuple[float, float, float, float]:
    """One upload during training.

    Returns the share of its time that training lost, beyond what it loses just before and after; that time;
    how long the call took; and the processor time of this process except for the loop. All times are in
    seconds.
    """
    before, _ = lost(step, _for(usual_s))
    called = seconds(partial(checkpoint.upload, source, background=True))
    processor, own = time.process_time(), time.thread_time()
    uploading = checkpoint._uploads._thread
    share, took = lost(step, lambda: uploading is not None and uploading.is_alive())
    inside = time.process_time() - processor - (time.thread_time() - own)
    checkpoint.wait_for_upload()
    after, _ = lost(step, _for(usual_s))
    took += called
    return called / took + share - (before + after) / 2, took, called, inside


def _for(duration_s: float) -> Callable[[], bool]:
    until = time.perf_counter() + duration_s
    return lambda: time.perf_counter() < until


def lost(step: Work, going: Callable[[], bool]) -> tuple[float, float]:
    """Take steps; returns the share of time lost to slow steps, and the total time."""
    steps, began = 0, time.perf_counter()
    while going():
        step()
        steps += 1
    took = time.perf_counter() - began
    return 1 - steps * STEP_S / took, took


def seconds(work: Work) -> float:
    """How long it takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main(size: Size) -> None:
    with tempfile.TemporaryDirectory(prefix="checkpoints-") as temporary:
        sources, scratch, server = (Path(temporary, part) for part in ("sources", "scratch", "server"))
        for part in (sources, scratch, server):
            part.mkdir()
        made = make_sources(sources, size.megabytes, size.files)
        for name, source in made.items():
            directory_rows(size.rounds, scratch, name, source)
        with s3_server(server) as url:
            bucket = server / "objects" / BUCKET
            for name, source in made.items():
                up_rows(size.rounds, name, source, bucket, url)
                down_rows(size.rounds, name, source, scratch, url)
                empty(bucket)
            background_rows(size, next(iter(made.values())), url)


BENCHMARK = Benchmark(
    main,
    Size(),
    quick=Size(megabytes=1, files=3, rounds=1, usual_s=0.05),
    positional=("megabytes", "files"),
)

if __name__ == "__main__":
    BENCHMARK.run()
