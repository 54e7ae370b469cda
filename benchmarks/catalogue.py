"""Lists of a gateway with very many experiments: a filtered and sorted page, through its REST application.

python -m benchmarks.catalogue [--quick] [EXPERIMENTS]
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx

from benchmarks.kit.benchmark import Benchmark
from benchmarks.kit.table import median, percentile, row
from det_contracts import expconf, queries
from det_contracts.commands import Answer
from det_contracts.envelope import Recorded
from det_contracts.events import metrics, searcher
from det_contracts.states import State as Ending
from services.catalogue.catalogue import Catalogue
from services.catalogue.domain import State, evolve
from services.catalogue.log_end import LogEnd
from services.catalogue.peers import Peers
from services.catalogue.store import write_rows
from services.gateway.http.server import application
from services.kit import migrate
from services.kit.awaitable_position import AwaitablePosition
from services.kit.blobs import DirectoryBlobs
from services.kit.conditions import Conditions
from services.kit.health_reports import HealthReports
from services.kit.log_memory import MemoryLog
from services.kit.log_progress import ProcessProgress
from services.kit.process_metrics import Measures
from services.live import Live
from services.people import tokens
from services.rest_requests.backend import Backend
from services.rest_requests.cluster_health import ClusterHealth
from services.rest_requests.settings import Settings

DAY_S = 86_400.0
NAMES = ("resnet", "bert", "mnist", "unet", "gan", "ppo", "vit", "whisper")
LABELS = ("sweep", "baseline", "paper", "debug", "gpu")


@dataclass(frozen=True)
class Size:
    experiments: int = 100_000
    """Every hundredth of them is open; more of those are needed than there are rounds."""
    rounds: int = 30


class Filled:
    """A state with that many experiments, each with a trial and its validation; a hundredth is open."""

    def __init__(self, count: int) -> None:
        self.state = State()
        self._random = random.Random(7)
        self._position = 0
        self._config = expconf.complete(
            {
                "entrypoint": "python3 train.py",
                "searcher": {"name": "single", "metric": "loss", "max_length": 100},
                "checkpoint_storage": {"type": "shared_fs", "host_path": "/tmp"},
            },
            seed=1,
            name="benchmark",
        )
        for id in range(1, count + 1):
            self.add(id)

    def add(self, id: int) -> None:
        """Add an experiment with its results."""
        chance = self._random
        config = self._config | {
            "name": f"{chance.choice(NAMES)}-{id}",
            "labels": chance.sample(LABELS, 2),
            "hyperparameters": {"lr": {"type": "const", "val": 10 ** chance.uniform(-5, 0)}},
        }
        self.say(
            searcher.ExperimentCreated(
                experiment_id=id,
                user=chance.choice(("determined", "admin")),
                config=config,
                original_config="",
                reason="",
            ),
            searcher.ExperimentActivated(id, "asked"),
            searcher.TrialCreated(
                trial_id=id,
                experiment_id=id,
                request_id=f"r{id}",
                task_id=f"{id}.r{id}",
                seed=1,
                hparams={"lr": config["hyperparameters"]["lr"]["val"]},
                reason="",
            ),
            metrics.Validated(
                trial_id=id,
                number=1,
                run=1,
                steps_completed=100,
                metric=chance.random(),
                reported_at=DAY_S,
            ),
        )
        if id % 100:
            ended: Ending = "COMPLETED" if chance.random() < 0.9 else "ERROR"
            self.say(
                searcher.TrialEnded(trial_id=id, state="COMPLETED", restarts=0, reason=""),
                metrics.Settled(trial_id=id, reason=""),
                searcher.ExperimentEnded(id, ended, ""),
            )

    def say(self, *events: Any) -> set[Any]:
        """Fold events; returns the keys of the changed records."""
        moved: set[Any] = set()
        for event in events:
            self._position += 1
            at = 1_700_000_000.0 + self._position
            moved.update(evolve(self.state, Recorded(self._position, event, str(self._position), "test", at)))
        return moved


class Alone:
    """The other services, which answer nothing but statistics."""

    async def command(self, command: Any) -> Answer:
        raise NotImplementedError

    async def log_progress(self, owners: Collection[str]) -> dict[str, list[ProcessProgress]]:
        return {}

    async def publish(self, subject: str, body: bytes) -> None:
        raise NotImplementedError

    async def query(self, query: Any, **_: Any) -> Answer:
        if isinstance(query, queries.Pools):
            return Answer(0, [])
        ids = getattr(query, "trial_ids", None)
        return Answer(0, {} if ids is None else [[id, {"min": id / 7 % 1, "last": id % 13}] for id in ids])


class Saver:
    """The tables are always current, since nobody writes to the log."""

    def watch(self, on_changed: Any, on_reload: Any) -> None:
        self.note = on_changed

    async def wait_for_position(self, position: int, within_s: float = 0.0) -> None:
        return None

    def saved_position(self, connection: Any) -> int:
        return 0


async def nothing_new() -> int:
    """Where the log ends."""
    return 0


def catalogue(filled: Filled, folder: Path) -> tuple[Catalogue, Any]:
    """A catalogue over the state, with its tables written."""
    database = migrate.open_database(f"sqlite:///{folder / 'gateway.db'}", "gateway")
    records = {("experiments", id): experiment for id, experiment in filled.state.experiments.items()}
    with database.engine.begin() as connection:
        write_rows(connection, records, ())
    saver: Any = Saver()
    runner: Any = SimpleNamespace(
        state=filled.state,
        positions={"CONTROL": 0},
        wait_for_position=saver.wait_for_position,
        pager=None,
        stream_positions=SimpleNamespace(is_behind=False),
    )
    return Catalogue(runner, saver, database, LogEnd(nothing_new)), saver


async def client(filled_catalogue: Catalogue, folder: Path) -> httpx.AsyncClient:
    """A client signed in at a gateway that serves the catalogue."""
    backend = Backend(
        settings=Settings(cluster_id="c", cluster_name="benchmark"),
        catalogue=filled_catalogue,
        peers=Peers(Alone(), filled_catalogue),
        live=Live(filled_catalogue, MemoryLog(), AwaitablePosition()),
        journal=MemoryLog(),
        blobs=DirectoryBlobs(folder),
        token_key=b"a key that is long enough",
        task_key=None,
        storage=None,
        measures=Measures("gateway"),
        health=ClusterHealth(Conditions("gateway"), HealthReports()),
    )
    made = httpx.AsyncClient(transport=httpx.ASGITransport(application(backend)), base_url="http://localhost")
    # Nothing is folded here: a session whose record has not arrived yet is accepted by its signature.
    session = tokens.issue(backend.token_key, tokens.new_session("determined", time.time()))
    made.headers["Authorization"] = f"Bearer {session}"
    return made


def leaf(column: str, operator: str, value: Any) -> dict[str, Any]:
    return {"kind": "field", "columnName": column, "operator": operator, "value": value}


def wanted(conjunction: str, *children: Any) -> str:
    group = {"kind": "group", "conjunction": conjunction, "children": children}
    return json.dumps({"filterGroup": group, "showArchived": False})


CASES = {
    "newest first, no filter": {"sort": "id=desc"},
    "state, hyperparameter and tag; by the metric": {
        "filter": wanted(
            "and",
            leaf("state", "=", "COMPLETED"),
            leaf("hp.lr", "<", 0.01),
            leaf("tags", "contains", "sweep"),
        ),
        "sort": "searcherMetricsVal=asc",
    },
    "part of the name; by name, then by start": {
        "filter": wanted("and", leaf("name", "contains", "res")),
        "sort": "name=asc,startTime=desc",
    },
    "either of two, all sorted by a hyperparameter": {
        "filter": wanted("or", leaf("searcherMetricsVal", "<", 0.5), leaf("tags", "contains", "paper")),
        "sort": "hp.lr=desc",
    },
    "another metric than the searcher's": {
        "filter": wanted("and", leaf("validation.accuracy.min", "<", 0.3)),
        "sort": "validation.accuracy.last=desc,id=asc",
    },
}


def main(size: Size) -> None:
    asyncio.run(measured(size.experiments, size.rounds))


async def measured(count: int, rounds: int) -> None:
    began = time.perf_counter()
    filled = Filled(count)
    row(f"fold {count:,} experiments", time.perf_counter() - began, "s")
    with tempfile.TemporaryDirectory() as name:
        filled_catalogue, saver = catalogue(filled, Path(name))
        web = await client(filled_catalogue, Path(name))
        for title, params in CASES.items():
            answers = await measure(web, rounds, "experiments-search", params, filled, saver)
            tell(f"page of 100 of {count:,}: {title}", *answers)
        plain = {"sortBy": "SORT_BY_SEARCHER_METRIC_VAL", "states": "STATE_COMPLETED", "name": "res"}
        answers = await measure(web, rounds, "experiments", plain, filled, saver)
        tell("the same from SQL, as 0.25 asks", *answers)
        await web.aclose()


async def measure(
    web: httpx.AsyncClient, rounds: int, path: str, params: Any, filled: Filled, saver: Any
) -> tuple[list[float], list[float]]:
    """First answer, and later ones while experiments change in between: milliseconds, and processor time."""
    took, busy = [], []
    for turn in range(rounds + 1):
        moved = filled.say(searcher.ExperimentPaused((turn + 1) * 100, "asked"))
        saver.note(moved)
        began, worked = time.perf_counter(), time.process_time()
        answer = await web.get(f"/api/v1/{path}", params=params | {"limit": 100, "lean": "true"})
        took.append(1000 * (time.perf_counter() - began))
        busy.append(1000 * (time.process_time() - worked))
        assert answer.status_code == 200, answer.text
    return took, busy


def tell(title: str, took: list[float], busy: list[float]) -> None:
    later = took[1:]
    work = f"{median(busy[1:]):.0f} ms of a processor"
    ratio = f"p95 {percentile(later, 0.95):.0f} ms; first {took[0]:.0f} ms; {work}"
    row(title, median(later), "ms", "< 200", ratio)


BENCHMARK = Benchmark(main, Size(), quick=Size(experiments=300, rounds=2), positional=("experiments",))

if __name__ == "__main__":
    BENCHMARK.run()
