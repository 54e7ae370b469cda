"""What becomes of requests that are being handled when the gateway is stopped."""

import asyncio
import logging

import pytest

from services.gateway.http import server
from services.web.connection import Connections

REQUEST = b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n"
BEGIN = {"type": "http.response.start", "status": 200, "headers": []}


async def stopped_during(app_of):
    """What a client receives whose request is being handled when the server is stopped."""
    entered = asyncio.Event()
    listener = server.listening_socket("127.0.0.1", 0)
    listener.listen()
    serving = asyncio.create_task(server.serve(app_of(entered), listener, Connections(10, 10)))
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    writer.write(REQUEST)
    await entered.wait()
    serving.cancel()
    received = await reader.read()
    await asyncio.wait([serving])
    writer.close()
    return received


def working(entered, *messages):
    """An application that sends some messages and then works without end."""

    async def app(scope, receive, send):
        for message in messages:
            await send(message)
        entered.set()
        await asyncio.Event().wait()

    return app


@pytest.mark.parametrize("messages", [(), (BEGIN, {"type": "http.response.body", "more_body": True})])
def test_a_request_that_is_cut_off_is_no_defect(messages, monkeypatch, caplog):
    monkeypatch.setattr(server, "CLOSE_PATIENCE_S", 0)
    with caplog.at_level(logging.ERROR, "uvicorn.error"):
        received = asyncio.run(stopped_during(lambda entered: working(entered, *messages)))
    assert "Exception in ASGI application" not in caplog.text
    if messages:
        assert received.startswith(b"HTTP/1.1 200")
        assert not received.endswith(b"0\r\n\r\n"), "it must not look whole"
    else:
        assert received.startswith(b"HTTP/1.1 503")
        assert b"is being stopped; try again" in received
