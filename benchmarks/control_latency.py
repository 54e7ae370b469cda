"""From an append to CONTROL until every service has folded it, on an idle local cluster.

python -m benchmarks.control_latency [--quick] [TIMES]
"""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import dataclass

import nats

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.cluster import broker_url, running_cluster
from benchmarks.kit.table import percentile, row
from det_contracts import codec, queries
from det_contracts.events import trial
from services.kit.bus import Asker
from services.kit.log import Draft
from services.kit.log_jetstream import JetStreamLog

QUESTIONS = (
    queries.SearchProgress([]),
    queries.Waiting(),
    queries.TrialSummaries([]),
    queries.Checkpoints(uuids=["none"]),
)


async def measure(url: str, credentials: str, times: int) -> tuple[list[float], list[float]]:
    """Seconds of each append alone, and until all four have answered at its position."""
    client = await nats.connect(url, user_credentials=credentials)
    journal, asker = JetStreamLog(client), Asker(client)
    appends, wholes = [], []
    for _ in range(times):
        event, id = trial.StatusSet(999_999, 1, "benchmark"), uuid.uuid4().hex
        body = codec.encode(event, id=id, actor="benchmark", at=time.time())
        began = time.perf_counter()
        position = await journal.append(Draft(codec.subject_of(event), body, id))
        appends.append(time.perf_counter() - began)
        await asyncio.gather(*(asker.query(question, min_position=position) for question in QUESTIONS))
        wholes.append(time.perf_counter() - began)
        await asyncio.sleep(0.005)
    await client.close()
    return appends, wholes


@dataclass(frozen=True)
class Size:
    times: int = 200


def main(size: Size) -> None:
    with running_cluster(slots=1) as home:
        appends, wholes = asyncio.run(measure(*broker_url(home), size.times))
    alone, whole = percentile(appends, 0.5) * 1e3, percentile(wholes, 0.5) * 1e3
    row("append to CONTROL, acknowledged, p50", alone, "ms")
    row(
        "append -> folded by every service and asked for, p50",
        whole,
        "ms",
        "< 5",
        f"{whole / alone:.1f} x append",
    )


BENCHMARK = Benchmark(main, Size(), quick=Size(times=3), given=("times",))

if __name__ == "__main__":
    BENCHMARK.run()
