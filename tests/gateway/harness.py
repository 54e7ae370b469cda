"""A gateway without a network: the log in memory, a real database, stand-ins for the other services."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from det_contracts import codec, commands, queries, subjects
from det_contracts.commands import Answer
from det_contracts.problems import Refused, unavailable
from services.catalogue.catalogue import Catalogue
from services.catalogue.log_end import LogEnd
from services.catalogue.peers import Peers
from services.catalogue.store import write_rows
from services.checkpoints.app import RULES as CHECKPOINTS
from services.gateway.app import RULES
from services.gateway.http.server import application
from services.intake.relay import Relay
from services.kit.blobs import DirectoryBlobs
from services.kit.conditions import Conditions
from services.kit.credentials import Authority
from services.kit.health_reports import HealthReports
from services.kit.lag import HasLag
from services.kit.log import Draft, Stored
from services.kit.log_memory import MemoryLog
from services.kit.log_progress import ProcessProgress
from services.kit.process_metrics import Measures
from services.kit.rules import Call
from services.kit.runner import Runner
from services.kit.sealing import Sealer
from services.kit.snapshot_store import DatabaseSaver
from services.live import Live
from services.people import tokens
from services.rest_requests.backend import Backend
from services.rest_requests.cluster_health import ClusterHealth
from services.rest_requests.settings import Settings
from services.scheduler.app import RULES as SCHEDULER
from services.webhooks.app import RULES as WEBHOOKS
from tests.fixtures.databases import open_sqlite

OF_TASKS = (commands.SubmitTask, commands.StopTask, commands.StateIdle)
KEY = b"a key that is long enough"
AUTHORITY = Authority.create()
TASK_KEY = b"a key of tasks"
SEALER = Sealer(b"s" * 32)


class StandIn:
    """Answers for the other services: commands by functions of the test, queries by values or functions."""

    def __init__(self) -> None:
        self.commands: list[Any] = []
        self.published: list[tuple[str, bytes]] = []
        """Subjects and bodies of messages that were published and are not stored."""
        self.asked_at: dict[type, int] = {}
        """For each kind of query, the position in CONTROL that its owner had to have read."""
        self.deaf = False
        self.on_command: Callable[[Any], Any] = lambda command: None
        self.position: Callable[[], int] = lambda: 0
        self.values: dict[type, Any] = {
            queries.SearchProgress: {},
            queries.Waiting: {},
            queries.TrialSummaries: {},
            queries.TrialStatistics: [],
            queries.MetricNames: {},
            queries.Reports: {"rows": [], "more": False},
            queries.ReportWindow: {"rows": [], "total": 0},
            queries.LogPage: {"lines": [], "through": 0},
        }
        self.progress: dict[str, list[ProcessProgress]] = {}
        self.close: Any = None
        self.append: Callable[..., Any] = lambda *events: None
        self.log: Callable[[], list[Stored]] = list
        for query in (queries.Jobs, queries.Pools, queries.Fits, queries.JobsUsed, queries.PreviewChange):
            self.values[query] = partial(self._answered, SCHEDULER)
        for query in (queries.StorageUsed, queries.StorageRefusal):
            self.values[query] = partial(self._answered, CHECKPOINTS)
        for query in (queries.Webhooks, queries.Deliveries):
            self.values[query] = partial(self._answered, WEBHOOKS)

    def _answered(self, rules: Any, query: Any) -> Any:
        """What a service's own rules answer at this end of the log."""
        state = rules.state()
        for message in self.log():
            list(rules.evolve(state, codec.decode(message.body, message.position)))
        return rules.answers[type(query)](state, query)

    async def _ruled(self, rules: Any, command: Any) -> Answer:
        """What a service's own rules decide at this end of the log, with what its state then calls for."""
        state = rules.state()
        for message in self.log():
            list(rules.evolve(state, codec.decode(message.body, message.position)))
        result = rules.commands[type(command)](state, command, Call("command", 0.0))
        await self.append(*result.events)
        fresh = self.log()[len(self.log()) - len(result.events) :]
        touched = [key for m in fresh for key in rules.evolve(state, codec.decode(m.body, m.position))]
        for key in touched if rules is SCHEDULER else ():
            if key[0] == "allocations":
                await self.append(*rules.react(state, key))
        return Answer(self.position(), result.value)

    async def command(self, command: Any) -> Answer:
        self.commands.append(command)
        if commands.OWNER_OF[type(command)] == "gateway":
            position, value = await self.close(command, Call("close", time.time()))
            return Answer(position, value)
        if commands.OWNER_OF[type(command)] == "checkpoints":
            return await self._ruled(CHECKPOINTS, command)
        if commands.OWNER_OF[type(command)] == "webhooks":
            return await self._ruled(WEBHOOKS, command)
        of_task = isinstance(command, commands.ChangeJob) and command.experiment_id < 0
        if isinstance(command, OF_TASKS) or of_task:
            return await self._ruled(SCHEDULER, command)
        value = self.on_command(command)
        if asyncio.iscoroutine(value):
            value = await value
        return Answer(self.position(), value)

    async def publish(self, subject: str, body: bytes) -> None:
        if self.deaf:
            raise unavailable("the message bus cannot be reached; try again")
        self.published.append((subject, body))

    async def log_progress(self, owners: Collection[str]) -> dict[str, list[ProcessProgress]]:
        return {owner: self.progress.get(owner, []) for owner in owners}

    async def query(self, query: Any, *, min_position: int = 0, stream: str = subjects.CONTROL) -> Answer:
        self.asked_at[type(query)] = min_position
        value = self.values[type(query)]
        if callable(value):
            value = value(query)
        if isinstance(value, Refused):
            raise value
        return Answer(min_position, json.loads(json.dumps(value)))


async def _says_when_to_ask_again(answer: httpx.Response) -> None:
    """Every refusal that another attempt may get past says when, whatever a test is about."""
    if answer.status_code in (429, 503) and not answer.request.url.path.startswith("/proxy/"):
        assert int(answer.headers["Retry-After"]) > 0, f"{answer.request.url}: {answer.headers}"


class Harness:
    """One gateway; `get`, `post` and `send` make requests as the user `determined`."""

    def __init__(self, folder: Path, replica_of: Harness | None = None, **settings: Any) -> None:
        self._owns_loop = replica_of is None
        self.loop = replica_of.loop if replica_of else asyncio.new_event_loop()
        self.journal = replica_of.journal if replica_of else MemoryLog()
        self.database = open_sqlite(folder / "gateway.db", "gateway")
        measures = Measures("gateway")
        saver = DatabaseSaver(
            self.database,
            "gateway",
            RULES.state,
            projection=write_rows,
            roots=RULES.roots,
            measures=measures,
        )
        self.runner = Runner(RULES, self.journal, saver, measures=measures)
        self.peers = StandIn()
        self.peers.close = self.runner.command
        self.peers.append = self.append
        self.peers.log = lambda: self.journal.streams["CONTROL"]
        self.peers.position = lambda: len(self.journal.streams["CONTROL"])
        self.catalogue = Catalogue(self.runner, saver, self.database, LogEnd(self._end_of_log))
        live = Live(self.catalogue, self.journal, saver.folded_position)
        saver.watch(live.notify_changes, live.notify_reload)
        self.conditions, self.signs = Conditions("gateway"), HealthReports()
        self.lag: dict[str, HasLag] = {}
        self.backend = Backend(
            settings=Settings(
                **{"cluster_id": "c-1", "cluster_name": "test", "allowed_hosts": "gateway"} | settings
            ),
            catalogue=self.catalogue,
            peers=Peers(self.peers, self.catalogue),
            live=live,
            journal=self.journal,
            blobs=DirectoryBlobs(folder / "blobs"),
            token_key=KEY,
            task_key=TASK_KEY,
            sealer=SEALER,
            storage={"type": "shared_fs", "host_path": str(folder / "checkpoints")},
            measures=measures,
            health=ClusterHealth(self.conditions, self.signs, lambda: self.lag),
        )
        self.app = application(self.backend)
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        hooks = {"response": [_says_when_to_ask_again]}
        self.client = httpx.AsyncClient(transport=transport, base_url="http://gateway", event_hooks=hooks)
        self._ids = itertools.count()
        self._running = self.loop.create_task(self.runner.run())
        # What scripts say reaches the log as in a cluster; a replica leaves that to the first one.
        self.relay = Relay(self.journal)
        self._intake = None if replica_of else self.loop.create_task(self.relay.run())
        self.run(self.runner.ready.wait())
        self.settle()

    async def _end_of_log(self) -> int:
        return (await self.journal.bounds(subjects.CONTROL))[1]

    def run(self, work: Any) -> Any:
        async def bounded() -> Any:
            async with asyncio.timeout(60):
                return await work

        return self.loop.run_until_complete(bounded())

    def settle(self) -> None:
        """Wait until records and tables show the whole log."""
        self.run(self.catalogue.wait_for_position(len(self.journal.streams["CONTROL"])))

    def events_of(self, kind: type) -> list[Any]:
        """The facts of a kind in the log, once all that was stated is there."""
        self.run(self._admitted())
        records = [codec.decode(m.body, m.position) for m in self._stream()]
        return [record.event for record in records if isinstance(record.event, kind)]

    async def _admitted(self) -> None:
        while self.relay.position < len(self.journal.streams[subjects.WITNESS]):
            await asyncio.sleep(0.001)

    async def append(self, *events: Any, at: float = 1_700_000_000.0) -> None:
        for event in events:
            id = f"t{next(self._ids)}"
            body = codec.encode(event, id=id, actor="test", at=at)
            await self.journal.append(Draft(codec.subject_of(event), body, f"{id}-{len(self._stream())}"))

    def _stream(self) -> list[Any]:
        return self.journal.streams[subjects.CONTROL]

    def apply(self, *events: Any, at: float = 1_700_000_000.0) -> Harness:
        self.run(self.append(*events, at=at))
        self.settle()
        return self

    def let_in(self, user: str = "determined") -> None:
        """Be a user whose session lies in no log, as on a replica that is behind: the log begins empty."""
        token = tokens.issue(self.backend.token_key, tokens.new_session(user, time.time()))
        self.client.headers["Authorization"] = f"Bearer {token}"

    def log_in(self, user: str = "determined") -> str:
        answer = self.send("POST", "/api/v1/auth/login", {"username": user, "password": ""})
        assert answer.status_code == 200, answer.text
        self.client.cookies.clear()
        token = str(answer.json()["token"])
        self.client.headers["Authorization"] = f"Bearer {token}"
        return token

    def send(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        content = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        answer: httpx.Response = self.run(self.client.request(method, path, content=content, **options))
        return answer

    def get(self, path: str, **params: Any) -> Any:
        answer = self.send("GET", path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: Any = None, **options: Any) -> Any:
        answer = self.send("POST", path, body, **options)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def lines(self, path: str, **params: Any) -> list[Any]:
        answer = self.send("GET", path, params=params)
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.text.splitlines()]

    def refused(self, status: int, method: str, path: str, body: Any = None, **options: Any) -> str:
        """The text of an error answer inside /api/v1, after its shape was checked."""
        answer = self.send(method, path, body, **options)
        assert answer.status_code == status, answer.text
        error = answer.json()["error"]
        assert set(error) == {"code", "reason", "error"}
        return str(error["error"])

    def close(self) -> None:
        running = [task for task in (self._running, self._intake) if task is not None]
        for task in running:
            task.cancel()
        self.run(asyncio.gather(*running, return_exceptions=True))
        self.run(self.client.aclose())
        self.run(self.backend.close())
        self.database.close()
        if self._owns_loop:
            self.run(self.loop.shutdown_asyncgens())
            self.run(self.loop.shutdown_default_executor())
            self.loop.close()
