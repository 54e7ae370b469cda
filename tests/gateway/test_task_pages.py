"""What tasks serve under the gateway's address: nothing in it can act for who looks at it."""

from __future__ import annotations

import asyncio
import contextlib
import re

import pytest

from det_contracts import page_key
from det_contracts.events.gateway import Served
from services.kit import task_tokens
from services.web.task_pages import POLYFILLS, insert_polyfills, rewrite_links
from services.web.tickets import BadTicket, seal, unseal
from tests.fixtures.processor_speed import least_spent_s
from tests.gateway import stories as story
from tests.gateway.harness import KEY, TASK_KEY

HTML = b"<!doctype html><html><head><title>t</title></head><body></body></html>"


class Task:
    """A server as a task would have one, which keeps what it hears and answers what it is told to."""

    def __init__(self):
        self.heard = []
        self.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        self.port = 0
        self.serve_next = None
        """Answers in its place."""

    async def serve(self, reader, writer):
        if self.serve_next is not None:
            return await self.serve_next(reader, writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            size = int((re.search(rb"(?i)content-length: (\d+)", head) or (0, 0))[1])
            self.heard.append((head.decode(), await reader.readexactly(size)))
            writer.write(self.answer)
            await writer.drain()
        writer.close()

    def says(self, body, kind="text/html", **headers):
        lines = [f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items()]
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{''.join(lines)}\r\n"
        )
        self.answer = head.encode() + body


@pytest.fixture
def task(gateway, monkeypatch):
    """A TensorBoard that runs on a worker at loopback, and answers."""
    gateway.apply(story.worker_here(slots=4))
    gateway.apply(story.created(1), story.trial_created(1))
    board = gateway.post("/api/v1/tensorboards", {"config": {}, "experimentIds": [1]})["tensorboard"]
    made = Task()
    server = gateway.run(asyncio.start_server(made.serve, "127.0.0.1", 0))
    made.port = server.sockets[0].getsockname()[1]
    made.id, made.allocation = board["id"], f"{board['id']}.1"
    gateway.apply(story.placed(made.allocation, "TENSORBOARD"))
    # Servers of tests have the ports that the system gives them.
    monkeypatch.setattr("services.catalogue.gathers.TASK_PORTS", range(1024, 2**16))
    yield made
    server.close()


@pytest.fixture
def board(gateway, task):
    """It has told where it answers."""
    assert announce(gateway, task, f"127.0.0.1:{task.port}").status_code == 200
    return task


def announce(gateway, task, address):
    token = task_tokens.issue(TASK_KEY, task.allocation)
    path = f"/api/v1/allocations/{task.allocation}/proxy_address"
    return gateway.send("POST", path, {"proxyAddress": address}, headers={"Authorization": f"Bearer {token}"})


def with_cookie(gateway):
    """From here on requests are a browser's."""
    token = gateway.client.headers.pop("Authorization").partition(" ")[2]
    gateway.client.cookies.set("auth", token)
    return token


def key_of(board):
    """By which a task knows that the gateway asks, and not a script of its host."""
    return page_key.credential(task_tokens.issue(TASK_KEY, board.allocation))


def credentials_in(head):
    return re.findall(r"(?i)^authorization: (.*)\r$", head, re.MULTILINE)


def page_of(gateway, board, rest=""):
    answer = gateway.send("GET", f"/proxy/{board.id}/{rest}")
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def test_a_browser_is_sent_to_a_page_that_is_alone(gateway, board):
    token = with_cookie(gateway)
    own = {"Set_Cookie": "auth=evil; Path=/", "Content_Security_Policy": "script-src 'self'"}
    board.says(HTML, Content_Encoding="identity", **own)
    address = page_of(gateway, board, "x?y=1")
    assert re.fullmatch(rf"/proxy/{board.id}/~[\w-]+/x\?y=1", address)
    assert board.heard == []
    gateway.client.cookies.clear()
    page = gateway.send("GET", address, headers={"Cookie": "auth=x", "Accept": "text/html"})
    assert page.status_code == 200
    (policy,) = page.headers.get_list("content-security-policy")
    assert policy.startswith("sandbox ")
    assert "allow-same-origin" not in policy
    assert "set-cookie" not in page.headers
    assert page.headers["referrer-policy"] == "no-referrer"
    assert b"<head><script>" in page.content
    assert page.content.endswith(HTML.partition(b"<head>")[2])
    ((head, _),) = board.heard
    assert head.startswith(f"GET /proxy/{board.id}/x?y=1 HTTP/1.1")
    assert "accept-encoding: identity" in head.lower()
    for secret in ("ookie", "Bearer", "~", token):
        assert secret not in head
    assert credentials_in(head) == [key_of(board)]


def test_a_browser_without_a_session_signs_in_first(gateway, board):
    gateway.client.cookies.clear()
    gateway.client.headers.pop("authorization", None)
    browser = {"Accept": "text/html,*/*"}
    sent_on = gateway.send("GET", f"/proxy/{board.id}/x?y=1&z=2", headers=browser)
    assert (sent_on.status_code, sent_on.headers["location"]) == (
        303,
        f"/det/login?to=%2Fproxy%2F{board.id}%2Fx%3Fy%3D1%26z%3D2",
    )
    old = gateway.send("GET", f"/proxy/{board.id}/", headers=browser | {"Cookie": "auth=ended"})
    assert old.headers["location"] == f"/det/login?to=%2Fproxy%2F{board.id}%2F"
    assert gateway.send("GET", f"/proxy/{board.id}/").status_code == 401
    assert gateway.send("POST", f"/proxy/{board.id}/", headers=browser).status_code == 401
    assert board.heard == []


def test_an_address_of_older_clients_leads_to_the_page(gateway):
    for rest in ("jupyter-lab/d/default/%2Fdet%2Fwait?currentSlotsExceeded=false", "x"):
        answer = gateway.send("GET", f"/det/interactive/n-1/{rest}")
        assert (answer.status_code, answer.headers["location"]) == (307, "/proxy/n-1/")
    assert gateway.send("GET", "/det/interactive/%2F%2Fevil.org/x").headers.get("location", "/x")[:2] != "//"


@pytest.mark.parametrize("size", [1, 7, 64])
def test_what_a_page_asks_for_holds_its_ticket_however_the_page_comes(size):
    whole = b'<head></head>{"baseUrl": "/proxy/n-1/", "other": "/proxy/n-2/", "x": "/proxy/n-'

    async def parts():
        for at in range(0, len(whole), size):
            yield whole[at : at + size]

    async def all_of():
        return b"".join([part async for part in rewrite_links(parts(), b"/proxy/n-1/", b"/proxy/n-1/~t/")])

    assert asyncio.run(all_of()) == whole.replace(b"/proxy/n-1/", b"/proxy/n-1/~t/")


def changed(rewrite, whole, size):
    async def parts():
        for at in range(0, len(whole), size):
            yield whole[at : at + size]

    async def all_of():
        return b"".join([part async for part in rewrite(parts())])

    return asyncio.run(all_of())


@pytest.mark.parametrize("size", [1, 5, 64, 1 << 20])
@pytest.mark.parametrize("head", [b"<head>", b"<HEAD class='a'>", b"<head\n>"])
def test_a_page_gets_its_stand_ins_however_it_comes(head, size):
    before = b"<!doctype html><header><!-- <heading> -->"
    whole = before + head + b"<title>t</title>"
    assert changed(insert_polyfills, whole, size) == before + head + POLYFILLS + b"<title>t</title>"
    assert changed(insert_polyfills, before, size) == before


@pytest.mark.parametrize("size", [3, 64, 1 << 20])
@pytest.mark.parametrize("unit", [b"<head ", b"<head\n<", b"<head", b"<"])
def test_a_page_without_end_of_its_head_takes_no_longer_than_any(unit, size):
    """Each of its tags was once read to the end of the page, again with each part that came."""
    whole = unit * (2**16 // len(unit))
    assert changed(insert_polyfills, whole, size) == whole
    assert least_spent_s(lambda: changed(insert_polyfills, whole, size), 0.5) < 0.5


def test_the_page_may_ask_its_own_server(gateway, board):
    with_cookie(gateway)
    address = page_of(gateway, board)
    gateway.client.cookies.clear()
    headers = {"Origin": "null", "Access-Control-Request-Method": "POST"}
    may = gateway.send("OPTIONS", address, headers=headers)
    assert (may.status_code, may.headers["access-control-allow-origin"]) == (204, "*")
    board.says(b"{}", "application/json", Access_Control_Allow_Credentials="true")
    answer = gateway.send("POST", f"{address}data", {"a": 1}, headers={"Origin": "null"})
    assert (answer.json(), answer.headers["access-control-allow-origin"]) == ({}, "*")
    assert "access-control-allow-credentials" not in answer.headers
    assert board.heard[-1][1] == b'{"a": 1}'


def test_a_ticket_is_for_one_task_and_one_session(gateway, board):
    with_cookie(gateway)
    address = page_of(gateway, board)
    gateway.client.cookies.clear()
    ticket = address.split("/")[3]
    assert gateway.send("GET", f"/proxy/{board.id}/~{'A' * 60}/").status_code == 401
    assert gateway.send("GET", f"/proxy/other/{ticket}/").status_code == 401
    bearer = {"Authorization": f"Bearer {ticket}"}
    for value in (ticket, ticket.removeprefix("~")):
        bearer = {"Authorization": f"Bearer {value}"}
        assert gateway.send("GET", "/api/v1/me", headers=bearer).status_code == 401
    with pytest.raises(BadTicket):
        unseal(KEY, "other", ticket)
    assert unseal(KEY, "a", seal(KEY, "a", "token")) == "token"
    token = unseal(gateway.backend.token_key, board.id, ticket)
    closed = gateway.send("POST", "/api/v1/auth/logout", headers={"Authorization": f"Bearer {token}"})
    assert closed.status_code == 200
    assert gateway.send("GET", address).status_code == 401
    assert board.heard == []


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_pages_send_nothing_with_a_cookie(gateway, board, method):
    with_cookie(gateway)
    assert (
        gateway.send(method, f"/proxy/{board.id}/x", b"" if method != "OPTIONS" else None).status_code == 403
    )
    assert board.heard == []


def test_programs_are_answered_at_once_and_pages_of_theirs_are_alone_too(gateway, board):
    origins = {"Set_Cookie": "a=b", "Service_Worker_Allowed": "/", "WWW_Authenticate": 'Basic realm="det"'}
    board.says(HTML, X_Own="1", Connection="X-Hop", X_Hop="2", **origins)
    answer = gateway.send("GET", f"/proxy/{board.id}/")
    assert (answer.status_code, answer.content) == (200, HTML)
    assert answer.headers["content-security-policy"].startswith("sandbox ")
    assert answer.headers["x-own"] == "1"
    for gone in ("set-cookie", "service-worker-allowed", "www-authenticate", "x-hop"):
        assert gone not in answer.headers
    assert credentials_in(board.heard[0][0]) == [key_of(board)]


def test_where_a_task_leads_its_page_it_stays_alone(gateway, board):
    with_cookie(gateway)
    address = page_of(gateway, board)
    ticket = address.split("/")[3]
    board.answer = (
        f"HTTP/1.1 302 Found\r\nLocation: /proxy/{board.id}/y\r\nContent-Length: 0\r\n\r\n".encode()
    )
    assert gateway.send("GET", address).headers["location"] == f"/proxy/{board.id}/{ticket}/y"


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254:10000", "localhost:{port}", "127.0.0.2:{port}", "[::1]:{port}",
     "127.0.0.1:22", "127.0.0.1:0", "127.0.0.1:99999", "127.0.0.1:٣٣٣٣", "evil@127.0.0.1:{port}",
     "a b:{port}", "127.0.0.1#:{port}"],
)  # fmt: skip
def test_a_task_is_reached_at_its_own_worker_alone(gateway, task, address):
    assert announce(gateway, task, address.format(port=task.port)).status_code == 400
    assert gateway.send("GET", f"/proxy/{task.id}/").status_code == 503
    assert task.heard == []


def test_what_was_said_in_former_times_is_looked_at_as_well(gateway, task):
    gateway.apply(Served(task.allocation, "10.9.9.9:80", "the task said so"))
    assert gateway.send("GET", f"/proxy/{task.id}/").status_code == 400


@pytest.mark.parametrize("body", [None, {"some": "thing"}])
def test_a_task_that_only_begins_to_answer_holds_nobody(gateway, board, monkeypatch, body):
    """A byte of it now and then keeps the timeouts of single steps from passing."""
    monkeypatch.setattr("services.rest_routes.tasks.proxy.ANSWER_S", 0.2)

    ended = asyncio.Event()

    async def trickle(reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nX: ")
            while not writer.is_closing():
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.02)
        writer.close()
        ended.set()

    board.serve_next = trickle
    answer = gateway.send("POST" if body else "GET", f"/proxy/{board.id}/", body)
    assert (answer.status_code, f"task {board.id} did not begin to answer" in answer.text) == (503, True)
    gateway.run(ended.wait())
