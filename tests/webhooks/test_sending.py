"""One attempt over HTTP against receivers that behave well, badly, and not at all."""

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from services.kit.addresses import Addresses
from services.kit.tls import client_context
from services.webhooks.sending import Sender
from tests.fixtures.ports import reserved_port

LOOPBACK = Addresses(allowed="127.0.0.0/8")


class Receiver(ThreadingHTTPServer):
    """Answers as the path says, and keeps what it was sent."""

    daemon_threads = True

    def __init__(self):
        self.got = []
        self.released = threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, dict(self.headers), body))
        match self.path:
            case "/hangs":
                self.server.released.wait(20)
            case "/large":
                self.send_response(500)
                self.end_headers()
                self._flood()
            case "/moved":
                self.send_response(307)
                self.send_header("Location", f"{self.server.url}/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()
            case _:
                self.send_response(int(self.path[1:]))
                self.send_header("Content-Length", "0")
                self.end_headers()

    def _flood(self):
        try:
            for _ in range(10_000):
                self.wfile.write(b"x" * 65536)
        except OSError:
            self.server.released.set()

    def log_message(self, *args):
        pass


@pytest.fixture
def receiver():
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.released.set()
        server.shutdown()
        thread.join()


def send(url, addresses=LOOPBACK, within_s=30.0):
    return Sender(addresses, client_context(None), within_s).send(url, b"{}", {"X-Test": "1"})


def test_what_a_receiver_takes_has_arrived(receiver):
    result = send(f"{receiver.url}/204")
    assert (result.status, result.problem) == (204, "")
    ((path, headers, body),) = receiver.got
    assert (path, headers["X-Test"], body) == ("/204", "1", b"{}")


@pytest.mark.parametrize("status", [400, 404, 410, 429, 500, 503])
def test_what_a_receiver_refuses_has_not(receiver, status):
    result = send(f"{receiver.url}/{status}")
    assert (result.status, result.problem) == (status, f"the receiver answered {status}")
    assert not result.final
    assert len(receiver.got) == 1, "an attempt is one request"


def test_redirects_are_not_followed(receiver):
    result = send(f"{receiver.url}/moved")
    assert result.problem == "the receiver answered 307: redirects are not followed"
    assert [path for path, _, _ in receiver.got] == ["/moved"]


def test_a_receiver_that_does_not_answer_is_left(receiver):
    assert send(f"{receiver.url}/hangs", within_s=0.2).problem == "the receiver did not answer in time"


def test_a_receiver_that_drips_is_left(receiver):
    """An interim answer now and then keeps a time-out for each byte from ever passing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stop = threading.Event()

        def drip():
            connection, _ = listener.accept()
            with connection:
                while not stop.wait(0.05):
                    try:
                        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                    except OSError:
                        return

        dripping = threading.Thread(target=drip)
        dripping.start()
        result = send(f"http://127.0.0.1:{listener.getsockname()[1]}/", within_s=0.5)
        stop.set()
        dripping.join()
    assert result.problem == "the receiver did not answer in time"


def test_a_large_answer_is_not_read(receiver):
    result = send(f"{receiver.url}/large")
    assert result.problem
    assert receiver.released.wait(60), "the connection was not closed before all had been read"


def test_addresses_of_the_own_network_are_not_asked(receiver):
    result = send(f"{receiver.url}/204", Addresses())
    assert "127.0.0.1 is not contacted from here: it is not a public address" in result.problem
    assert result.final
    assert receiver.got == []


def test_nobody_listens(receiver):
    assert send(f"http://127.0.0.1:{reserved_port()}/").problem == "the receiver could not be connected to"


def test_a_receiver_without_tls(receiver):
    problem = send(f"https://127.0.0.1:{receiver.server_port}/secret").problem
    assert problem == "the receiver's certificate was not accepted, or it does not speak TLS"


def test_no_problem_names_more_of_the_address_than_its_host(receiver):
    for path in ("/500", "/moved"):
        assert path not in send(f"{receiver.url}{path}").problem.replace("answered 500", "")
    assert "token" not in send("http://127.0.0.1:1/token").problem
    assert "token" not in send("http://no-such-host.invalid/token").problem
