"""WebSockets of tasks: who may have one, what the task is told, and when they end."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve as serve_websockets
from websockets.exceptions import ConnectionClosed, InvalidStatus

from det_contracts.events import gateway as facts
from det_contracts.events import scheduler
from det_contracts.page_key import credential
from services.gateway.http.server import listening_socket, serve
from services.kit import task_tokens
from services.web.connection import Connections
from tests.gateway import stories as story
from tests.gateway.harness import TASK_KEY, Harness


class Front:
    """The gateway with real connections, and a task behind it that answers what it hears."""

    def __init__(self, gateway, kind):
        self.gateway, self.heard = gateway, []
        self.connections = Connections(100, 100)
        gateway.apply(story.worker_here(slots=4))
        task = gateway.post(f"/api/v1/{kind}s", {"config": {}})[kind]
        self.id, self.allocation = task["id"], f"{task['id']}.1"
        self.key = credential(task_tokens.issue(TASK_KEY, self.allocation))
        self.token = gateway.client.headers["Authorization"]
        gateway.apply(story.placed(self.allocation, kind.upper()))

    async def open(self):
        self._task = await serve_websockets(
            self._echo, "127.0.0.1", 0, process_request=self._admit, max_size=None
        )
        where = f"127.0.0.1:{self._task.sockets[0].getsockname()[1]}"
        await self.gateway.append(facts.Served(self.allocation, where, "the task said so", account="ann"))
        listener = listening_socket("127.0.0.1", 0)
        self.port = listener.getsockname()[1]
        self._serving = asyncio.ensure_future(serve(self.gateway.app, listener, self.connections))

    async def close(self):
        self._serving.cancel()
        await asyncio.wait([self._serving])
        self._task.close()
        await self._task.wait_closed()

    def _admit(self, connection, request):
        self.heard.append(request.headers)
        return connection.respond(403, "no") if "forbidden" in request.path else None

    async def _echo(self, socket):
        with contextlib.suppress(ConnectionClosed):
            async for message in socket:
                await socket.send(message)

    def joined(self, path="", *, by="own", **options):
        """A connection to the task as a client opens it."""
        token = self.token if by == "own" else by
        headers = {"Authorization": token} if token else {}
        address = f"ws://127.0.0.1:{self.port}/proxy/{self.id}/{path}"
        headers |= options.pop("headers", {})
        return connect(address, additional_headers=headers, proxy=None, max_size=None, **options)


@pytest.fixture
def front(gateway, tmp_path, monkeypatch):
    """Opens a notebook or a shell, by its kind; with settings at a gateway of its own."""
    monkeypatch.setattr("services.catalogue.gathers.TASK_PORTS", range(1024, 2**16))
    opened, others = [], []

    def made(kind, **settings):
        of = gateway
        if settings:
            (tmp_path / "other").mkdir()
            of = Harness(tmp_path / "other", **settings)
            of.let_in()
            others.append(of)
        new_front = Front(of, kind)
        of.run(new_front.open())
        of.settle()
        opened.append(new_front)
        return new_front

    yield made
    for task_front in opened:
        task_front.gateway.run(task_front.close())
    for of in others:
        of.close()


def refused_with(front, *arguments, **options):
    async def status():
        with pytest.raises(InvalidStatus) as refusal:
            await front.joined(*arguments, **options)
        return refusal.value.response.status_code

    return front.gateway.run(status())


def test_what_either_side_says_the_other_hears(front):
    notebook = front("notebook")

    async def talk():
        async with notebook.joined("api/kernels/1/channels?session_id=2") as socket:
            large = b"x" * (3 << 20)
            await socket.send("hello")
            await socket.send(large)
            echoes = [await socket.recv(), await socket.recv() == large]
            counted = notebook.connections.total
        while notebook.connections.total:
            await asyncio.sleep(0.01)
        return echoes, counted

    assert notebook.gateway.run(talk()) == (["hello", True], 1)
    (heard,) = notebook.heard
    assert heard["authorization"] == notebook.key
    assert notebook.token.partition(" ")[2] not in str(heard)


def test_a_page_joins_by_its_ticket_and_never_by_a_cookie(front, gateway):
    notebook = front("notebook")
    del gateway.client.headers["Authorization"]
    session = notebook.token.partition(" ")[2]
    gateway.client.cookies.set("auth", session)
    page = gateway.send("GET", f"/proxy/{notebook.id}/lab").headers["location"]
    ticket = page.split("/")[3]

    async def echoed():
        async with notebook.joined(f"{ticket}/x", by="", origin="null") as socket:
            await socket.send("a")
            return await socket.recv()

    assert gateway.run(echoed()) == "a"
    assert "~" not in str(notebook.heard)
    cookie = {"Cookie": f"auth={session}"}
    assert refused_with(notebook, "x", by="", headers=cookie, origin="https://elsewhere.org") == 403
    assert len(notebook.heard) == 1


def test_a_notebook_is_for_whom_it_acts_for(front, gateway):
    """Whoever may write in it acts with its owner's rights."""
    notebook = front("notebook")
    gateway.apply(facts.UserSet(user_id=8, username="egon", reason="made"))
    gateway.let_in("egon")
    egon = gateway.client.headers["Authorization"]
    assert gateway.send("GET", f"/proxy/{notebook.id}/lab").status_code == 403
    assert refused_with(notebook, by=egon) == 403
    assert refused_with(notebook, by="") == 401
    assert notebook.heard == []


def test_a_token_for_reading_opens_no_notebook(front, gateway):
    """Whatever is typed into it acts with all rights of its owner."""
    notebook = front("notebook")
    made = {
        scope: gateway.post("/api/v1/tokens", {"name": scope, "scope": scope}) for scope in ("read", "all")
    }
    read, whole = (f"Bearer {made[scope]['token']}" for scope in ("read", "all"))
    path = f"/proxy/{notebook.id}/api/kernels"
    for method in ("GET", "POST"):
        answer = gateway.send(method, path, headers={"Authorization": read})
        assert (answer.status_code, "for reading only" in answer.text) == (403, True)
    assert refused_with(notebook, by=read) == 403
    assert notebook.heard == []

    async def joined():
        async with notebook.joined(by=whole) as socket:
            await socket.send("hello")
            return await socket.recv()

    assert gateway.run(joined()) == "hello"


def test_a_shell_is_for_who_has_its_key_and_a_session_may_be_demanded(front, gateway):
    shell = front("shell")

    async def reached():
        async with shell.joined(by="") as socket:
            await socket.send("SSH-2.0")
            return await socket.recv()

    assert gateway.run(reached()) == "SSH-2.0"
    assert refused_with(front("shell", shell_needs_session=True), by="") == 401


def ends(front, act):
    """Whether a connection that is open when `act` happens is ended."""

    async def until_over():
        async with front.joined() as socket:
            await act()
            with pytest.raises(ConnectionClosed):
                await socket.recv()
        return True

    return front.gateway.run(until_over())


def test_it_ends_with_the_session_and_with_the_task(front, gateway, monkeypatch):
    monkeypatch.setattr("services.web.tunnels.RECHECK_S", 0.02)
    gateway.log_in()
    notebook = front("notebook")
    notebook.token = gateway.client.headers["Authorization"]

    async def logs_out():
        answer = await gateway.client.post("/api/v1/auth/logout")
        assert answer.status_code == 200

    assert ends(notebook, logs_out)
    gateway.log_in()
    notebook.token = gateway.client.headers["Authorization"]
    over = {"kind": "NOTEBOOK", "run": 1, "outcome": "killed", "reason": "killed"}
    event = scheduler.AllocationEnded(allocation_id=notebook.allocation, **over)
    assert ends(notebook, lambda: gateway.append(event))


@pytest.mark.parametrize("lost", ["the account", "the role"])
def test_the_key_of_a_shell_lets_in_for_as_long_as_its_owner_may_use_it(front, gateway, monkeypatch, lost):
    """A key cannot be taken back, so what it opens is looked at, at the door and while it is open."""
    monkeypatch.setattr("services.web.tunnels.RECHECK_S", 0.02)
    gateway.apply(facts.UserSet(user_id=8, username="egon", reason="made"))
    gateway.let_in("egon")
    shell = front("shell")
    gateway.apply(facts.RolesSet("user-8", (facts.Grant("Editor"),), "tried"))
    events = {
        "the account": facts.UserSet(user_id=8, username="egon", active=False, reason="left"),
        "the role": facts.RolesSet("user-8", (), "left"),
    }
    if lost == "the role":
        gateway.apply(facts.AuthzSet("rbac", "tried"))

    async def until_over():
        async with shell.joined(by="") as socket:
            await socket.send("SSH-2.0")
            assert await socket.recv() == "SSH-2.0"
            await gateway.append(events[lost])
            with pytest.raises(ConnectionClosed):
                await socket.recv()

    gateway.run(until_over())
    assert refused_with(shell, by="") == 401


def test_what_the_task_refuses_is_refused(front):
    notebook = front("notebook")
    assert refused_with(notebook, "forbidden") == 403


def test_nobody_has_more_than_their_share(front):
    notebook = front("notebook", streams_each=1)

    async def second():
        async with notebook.joined():
            with pytest.raises(InvalidStatus) as refusal:
                await notebook.joined()
            return refusal.value.response.status_code

    assert notebook.gateway.run(second()) == 429
