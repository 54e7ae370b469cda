"""Durable decisions per second: raw batches, and completions through the searcher without processes.

python -m benchmarks.decisions [--quick]
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import uvloop

from benchmarks.kit.appending import append_until_stored
from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.histories import config
from benchmarks.kit.live import Broker, connected, running_broker
from benchmarks.kit.table import median, row
from det_contracts import codec
from det_contracts.commands import CreateExperiment, SubmitTask
from det_contracts.events import trial
from services.kit.log import Draft, Fence
from services.kit.log_jetstream import JetStreamLog
from services.kit.rules import Call, Rules
from services.kit.runner import Runner
from services.kit.saver import NullSaver
from services.scheduler import app as scheduler
from services.searcher import app as searcher


@dataclass(frozen=True)
class Size:
    batches: int = 100
    together: int = 100
    """Events per batch."""
    singles: int = 500
    trials: int = 3000
    commands: int = 5000
    clients: int = 100
    rounds: int = 3


async def raw_batches(server: Broker, batches: int, size: int) -> float:
    """Events per second in fenced atomic batches, each flushed before its ack."""
    async with connected(server) as client:
        journal = JetStreamLog(client)
        newest_decision = await journal.last("control.bench.decision")
        fence = newest_decision.position if newest_decision else 0
        began = time.perf_counter()
        for _ in range(batches):
            drafts = [Draft("control.bench.decision", b"{}", uuid.uuid4().hex)]
            drafts += [Draft(f"control.bench.a.{n}.b", b"x" * 200, uuid.uuid4().hex) for n in range(size - 1)]
            last = await append_until_stored(journal, drafts, Fence("control.bench.decision", fence))
            fence = last - size + 1
        return batches * size / (time.perf_counter() - began)


async def single_appends(server: Broker, count: int = 500) -> float:
    """Sequential appends per second: the raw limit of flushing this disk."""
    async with connected(server) as client:
        journal = JetStreamLog(client)
        began = time.perf_counter()
        for _ in range(count):
            await journal.append(Draft("control.bench.a.1.c", b"x" * 200, uuid.uuid4().hex))
        return count / (time.perf_counter() - began)


async def completions(server: Broker, count: int) -> tuple[float, float]:
    """Operations of a large search that are completed and answered per second.

    First they come one by one, as scripts send them, each flushed before its ack; then all are in the log
    already when the decider starts to lead, as after an outage.
    """
    async with connected(server) as client:
        journal, leads = JetStreamLog(client), [True]
        runner = Runner(searcher.RULES, journal, NullSaver(searcher.RULES.state), is_leader=lambda: leads[0])
        task = asyncio.create_task(runner.run())
        await runner.ready.wait()
        command = CreateExperiment(
            user="b", config=config(2 * count, concurrent=2 * count), original_config=""
        )
        await runner.command(command, Call("c", time.time()))
        trials = runner.state.trials
        await _until(lambda: trials and all(t.run == 1 for t in trials.values()))
        open_now = [t for t in trials.values() if not t.complete]
        first, second = open_now[:count], open_now[count:]
        began = time.perf_counter()
        await _complete(journal, first)
        await _until(lambda: all(_answered(trials[t.id]) for t in first))
        one_by_one = len(first) / (time.perf_counter() - began)
        leads[0] = False
        await runner.wait_for_position(await _complete(journal, second), within_s=60)
        began = time.perf_counter()
        leads[0] = True
        runner.on_leadership_change()
        await _until(lambda: all(_answered(trials[t.id]) for t in second))
        at_once = len(second) / (time.perf_counter() - began)
        task.cancel()
        await asyncio.wait([task])
        return one_by_one, at_once


async def _complete(journal: JetStreamLog, trials: list[Any]) -> int:
    """The position of the last one."""
    gate = asyncio.Semaphore(256)

    async def complete(stored_trial: Any) -> int:
        async with gate:
            done = trial.OperationCompleted(
                trial_id=stored_trial.id,
                run=stored_trial.run,
                seq=stored_trial.seq,
                length=stored_trial.length,
                metric=0.5,
            )
            id = f"d-{stored_trial.id}-{stored_trial.seq}"
            body = codec.encode(done, id=id, actor="t", at=time.time())
            return await journal.append(Draft(codec.subject_of(done), body, id))

    return max(await asyncio.gather(*(complete(t) for t in trials)))


Command = Callable[[str, int], Any]
"""Creates a command from a client's name and a number."""


def an_experiment() -> Command:
    wanted = config(1)
    return lambda name, _: CreateExperiment(user=name, config=wanted, original_config="", activate=False)


def a_task(name: str, number: int) -> SubmitTask:
    return SubmitTask(
        task_id=f"t{number}", kind="COMMAND", name="", config={}, slots=1, pool="default", user=name
    )


async def accepted(
    server: Broker, rules: Rules[Any], wanted: Command, count: int, clients: int
) -> tuple[float, float]:
    """Commands accepted per second from clients that never pause, and the 99th percentile in ms."""
    async with connected(server) as client:
        runner = Runner(rules, JetStreamLog(client), NullSaver(rules.state))
        task = asyncio.create_task(runner.run())
        await runner.ready.wait()
        left, took = iter(range(count)), list[float]()

        async def ask(name: str) -> None:
            for number in left:
                began = time.perf_counter()
                await runner.command(wanted(name, number), Call(f"{name}-{number}", time.time()))
                took.append(time.perf_counter() - began)

        began = time.perf_counter()
        await asyncio.gather(*(ask(f"u{n}") for n in range(clients)))
        rate = count / (time.perf_counter() - began)
        task.cancel()
        await asyncio.wait([task])
        return rate, sorted(took)[int(0.99 * len(took))] * 1000


def _answered(stored_trial: Any) -> bool:
    return bool(stored_trial.announced_seq > 1 or stored_trial.idled_seq >= 1)


async def _until(true: Callable[[], Any]) -> None:
    while not true():
        await asyncio.sleep(0.005)


def main(size: Size) -> None:
    uvloop.run(measured(size))


async def measured(size: Size) -> None:
    with running_broker() as server:
        single = median([await single_appends(server, size.singles) for _ in range(size.rounds)])
        row("single durable appends, one after another", single, "events/s")
        batched = median([await raw_batches(server, size.batches, size.together) for _ in range(size.rounds)])
        row(
            "durable decided events through batches",
            batched,
            "events/s",
            ">= 5,000",
            f"{batched / single:.1f} x single",
        )
    with running_broker() as server:
        one_by_one, at_once = await completions(server, size.trials)
        row(
            "completions decided durably, each flushed by itself before",
            one_by_one,
            "/s",
            ">= 2,500",
            f"{one_by_one / single:.2f} x single appends",
        )
        row(
            "completions decided durably that lie in the log",
            at_once,
            "/s",
            ">= 15,000",
            f"{at_once / single:.2f} x single appends",
        )
    for what, rules, wanted in (
        ("experiments", searcher.RULES, an_experiment()),
        ("tasks", scheduler.RULES, a_task),
    ):
        with running_broker() as server:
            rate, slowest = await accepted(server, rules, wanted, size.commands, size.clients)
            row(
                f"{what} accepted durably, {size.clients} clients that never stop",
                rate,
                "/s",
                "",
                f"{rate / single:.2f} x single appends",
            )
            row(f"the same of {what}: time of one command, 99th percentile", slowest, "ms")


BENCHMARK = Benchmark(
    main, Size(), quick=Size(batches=3, together=4, singles=10, trials=8, commands=20, clients=4, rounds=1)
)

if __name__ == "__main__":
    BENCHMARK.run()
