"""Clients of the gateway: they write and read registers, view pages, follow logs, and disconnect anywhere."""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from contextlib import aclosing

import msgspec

from det_contracts import subjects
from det_contracts.commands import ChangeExperiment, RemoveWorkspace, ReviseExperiment, SetWorkspace
from det_contracts.problems import Refused
from det_contracts.queries import LogPage
from services.catalogue.waiters import Fact
from services.live.follow import Follower
from services.live.tails import decode_batch
from tests.simulation.violation import Violation

CLIENTS = 3
PATIENCE_S = 30.0
MOST_STEPS = 14


class HangUpAfter(Coroutine):
    """The work of a request whose client disconnects at the `at`-th await, as noticed by its server."""

    def __init__(self, work, at):
        self._work = work
        self._left = at

    def send(self, value):
        self._left -= 1
        if self._left == 0:
            asyncio.get_running_loop().call_soon(asyncio.current_task().cancel)
        return self._work.send(value)

    def throw(self, error):
        return self._work.throw(error)

    def close(self):
        self._work.close()

    def __await__(self):
        return self._work.__await__()


class Client:
    """A browser user; `position` is how far they have seen the log."""

    def __init__(self, world, number):
        self.world = world
        self.chance = world.plan.chance(f"client/{number}")
        self.name = f"client{number}"
        self.position = 0

    async def live(self):
        """One request after the other, to any gateway that serves."""
        while True:
            await asyncio.sleep(self.chance.expovariate(1.0))
            there = [replica for replica in self.world.of("gateway") if replica.up and replica.serves]
            if there:
                await self._visit(self.chance.choice(there))

    async def _visit(self, gateway):
        name = self.chance.choices(list(VISITS), [often for often, _ in VISITS.values()])[0]
        at = self.chance.choice((0, self.chance.randrange(1, MOST_STEPS)))
        request = gateway.process.run(HangUpAfter(VISITS[name][1](self, gateway), at))
        gateway.visitors[request] = None
        request.add_done_callback(gateway.visitors.pop)
        try:
            await asyncio.wait([request], timeout=PATIENCE_S)
        finally:
            request.cancel()
        if not request.done():
            return
        if request.cancelled() or isinstance(request.exception(), Refused):
            return
        if request.exception() is not None:
            self.world.fail(request.exception())
            return
        self.position = max(self.position, request.result())
        gateway.floor = max(gateway.floor, request.result())
        self.world.ledger.count(f"visits: {name}")

    def report_if_wrong(self, wrong, name="reads follow what was answered"):
        """Fail the run if `wrong` is not empty."""
        if wrong:
            self.world.fail(Violation(name, f"{self.name}: {wrong}"))


# -- requests, each in the gateway's process; returns the position at which its answer is true


async def write(client, gateway):
    """Create, rename or remove a workspace."""
    world, chance = client.world, client.chance
    workspace_ids = [id for id in world.registers.keys("workspace") if chance.random() < 0.8]
    id = chance.choice(workspace_ids) if workspace_ids else None
    if id is not None and chance.random() < 0.15:
        command = RemoveWorkspace(workspace_id=id, user="admin")
    else:
        name = f"place {world.new_id()}"
        command = SetWorkspace(workspace_id=id, name=name, user="admin")
    await gateway.peers.command(command)
    return gateway.catalogue.position


async def change(client, gateway):
    """Pause, activate or rename an experiment."""
    experiment_ids = client.world.registers.keys("state")
    if not experiment_ids:
        return 0
    id, action = client.chance.choice(experiment_ids), client.chance.choice(("pause", "activate", "rename"))
    if action == "rename":
        changes = {"name": f"name {client.world.new_id()}"}
        command = ReviseExperiment(experiment_id=id, changes=changes, user="admin")
    else:
        command = ChangeExperiment(experiment_id=id, action=action, user="admin")
    await gateway.peers.command(command)
    return gateway.catalogue.position


async def read(client, gateway):
    """Read one record; the client may pass on a position that it saw elsewhere."""
    registers, chance, floor = client.world.registers, client.chance, gateway.floor
    newest_floor = max(replica.floor for replica in client.world.of("gateway"))
    # As the HTTP layer does; a gateway that is out of touch or far behind says so.
    if await gateway.catalogue.catch_up():
        floor = newest_floor
    kind = chance.choice(("workspace", "state", "name"))
    ids = registers.keys(kind)
    if not ids:
        return 0
    id, state, at = chance.choice(ids), gateway.catalogue.state, gateway.catalogue.position
    shown, right = _LOOKS[kind](state, id), registers.at(kind, id, at)
    if at < floor:
        client.report_if_wrong(f"{gateway.name} shows position {at}, {floor} was answered before")
    # Until it is renamed, an object has the name from its configuration.
    gone = kind == "name" and registers.at("state", id, at) == "DELETED"
    if right is not None and shown != right and shown != _GONE.get(right, right) and not gone:
        client.report_if_wrong(f"{kind} {id} is '{shown}' at {at} of {gateway.name}, the log says '{right}'")
    return at


async def list_all(client, gateway):
    """A list, from the tables."""
    floor, before = gateway.floor, gateway.catalogue.position
    rows = await gateway.catalogue.read(lambda shelf: dict(shelf.rows))
    after = gateway.catalogue.position
    if before < floor:
        client.report_if_wrong(f"{gateway.name} lists position {before}, {floor} was answered before")
    for id in client.world.registers.keys("state"):
        row = rows.get(("experiments", id))
        listed_state = row.state if row is not None else None
        right = client.world.registers.between("state", id, before, after)
        if listed_state not in right and not (listed_state is None and "DELETED" in right):
            client.report_if_wrong(
                f"experiment {id} is listed as '{listed_state}' from {before} on, the log says {right}"
            )
    return before


async def look(client, gateway):
    """A page that is notified of changes, and reconnects where it left off."""
    after = client.position if client.chance.random() < 0.7 else None
    async with aclosing(gateway.live.events(["workspaces", "experiments"], after=after)) as events:
        for _ in range(client.chance.randrange(1, 5)):
            event = await anext(events)
            if event.startswith(b"id: "):
                after = _check_notified(client, after, event)
    return after or 0


def _check_notified(client, after, event):
    head, _, data = event.partition(b"\n")
    at = int(head[4:])
    topics = msgspec.json.decode(data.partition(b"data: ")[2])["topics"]
    if after is not None and "workspaces" not in topics and client.world.registers.places_changed(after, at):
        client.report_if_wrong(
            f"nobody told that workspaces changed between {after} and {at}", "pages are told"
        )
    return at


async def follow(client, gateway):
    """A trial's log to its end."""
    world, disk = client.world, client.world.disk
    trials = list(world.ledger.trials.values())
    if not trials:
        return 0
    trial = client.chance.choice(trials)
    task = f"{trial.experiment.id}.{trial.request_id}"
    lines = []
    follower = Follower(
        gateway.following,
        LogPage(task_id=task),
        user="ann",
        is_over=Fact(lambda state: _is_over(state, trial.id), (("trials", trial.id),)),
        holds=gateway.catalogue.waiters.holds,
        recheck=lambda: None,
        render=lambda line: f"{line.allocation_id} {line.worker_id} {line.text}\n".encode(),
        kind="simulated",
    )
    async with aclosing(follower.lines()) as pages:
        async for page in pages:
            lines += page.splitlines()
    # What the log holds twice may be shown twice: see README, "Known".
    once = [line for line, count in Counter(_written(disk, task)).items() if count == 1]
    if any(lines.count(line) > 1 for line in once):
        client.report_if_wrong(f"lines of {task} are told twice: {lines}", "each line once")
    missing = set(_written(disk, task, world.registers.log_end.get(trial.id, 0))) - set(lines)
    if missing:
        client.report_if_wrong(f"lines of {task} are missing: {missing}", "each line once")
    return 0


def _is_over(state, trial_id):
    trial = state.trials.get(trial_id)
    return trial is None or trial.ended_at is not None


def _written(disk, task, end=None):
    wanted = subjects.logs(task)
    messages = [message for message in disk.streams[subjects.LOGS][:end] if message.subject == wanted]
    fresh = [batch for batch in map(decode_batch, messages) if batch is not None]
    return [
        f"{line.allocation_id} {line.worker_id} {line.text}".encode()
        for batch in fresh
        for line in batch.lines
    ]


def _of(table, field):
    def look(state, id):
        record = getattr(state, table).get(id)
        return getattr(record, field) if record is not None else None

    return look


_LOOKS = {
    "workspace": _of("workspaces", "name"),
    "state": _of("experiments", "state"),
    "name": _of("experiments", "name"),
}
_GONE = {"gone": None, "DELETED": None}
VISITS = {
    "write": (4, write),
    "change": (3, change),
    "read": (8, read),
    "list": (2, list_all),
    "look": (2, look),
    "follow": (2, follow),
}
"""Name to (weight, request)."""


def clients(world):
    """Coroutines of all clients; none without a gateway."""
    if not world.of("gateway") or "clients" in world.plan.off:
        return []
    return [Client(world, number).live() for number in range(CLIENTS)]
