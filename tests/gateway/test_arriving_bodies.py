"""What has arrived of unfinished bodies is bounded: no address can fill the gateway's memory with them."""

import pytest

from services.web.body_limits import BodyLimitsMiddleware
from services.web.pacing import Pacing
from services.web.pacing_middleware import Client, Pace
from services.web.turns import Turns
from tests.gateway.test_connections import HEAD, answer, body_of, played, settled

KIB = 1 << 10
PART = b"x" * (100 * KIB)
WHOLE = 4 * len(PART)


async def nobody_is_refused(scope):
    return None


async def collecting(scope, receive, send):
    """An application that keeps the whole body, as routes do."""
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body, more = body + message.get("body", b""), message.get("more_body", False)
    await answer(send, b"%d" % len(body))


PACE = Pace(Pacing(1000, 0.0), Turns(), lambda scope: Client("ann", "ann"))
APP = BodyLimitsMiddleware(collecting, nobody_is_refused, PACE)


async def begins(server, address, path=b"/api/v1/models"):
    wire = server.connected(address)
    wire.protocol.data_received(HEAD.replace(b"/x", path) % WHOLE + PART)
    await settled()
    return wire


async def ends(wire):
    for _ in range(3):
        wire.protocol.data_received(PART)
        await settled()


def test_the_body_that_stopped_first_is_given_up_and_another_address_is_served():
    async def story(server):
        crowd = [await begins(server, "10.0.0.1") for _ in range(12)]
        assert server.connections.bodies.total <= 1000 * KIB
        cut = [wire for wire in crowd if wire.ended]
        assert cut == crowd[:2]
        assert b"408 Request Timeout" in cut[0].sent
        assert b"from this address are incomplete" in cut[0].sent
        single = await begins(server, "10.0.0.2")
        await ends(single)
        assert body_of(single) == b"%d" % WHOLE
        for wire in [single, *crowd]:
            wire.abort()
        await settled()
        assert server.connections.bodies.total == 0

    played(story, APP, bodies=1000 * KIB)


def test_who_sends_steadily_is_served_beside_those_who_stopped():
    async def story(server):
        crowd = [await begins(server, "10.0.0.1") for _ in range(9)]
        for _ in range(5):
            steady = await begins(server, "10.0.0.1")
            await ends(steady)
            assert body_of(steady) == b"%d" % WHOLE
            steady.close()
        for wire in crowd:
            wire.abort()

    played(story, APP, bodies=1000 * KIB)


@pytest.mark.parametrize("path", [b"/api/v1/experiments", b"/api/v1/commands", b"/proxy/x/"])
def test_what_is_kept_in_a_file_or_passed_on_is_not_counted(path):
    async def story(server):
        wires = [await begins(server, "10.0.0.1", path) for _ in range(12)]
        assert server.connections.bodies.total == 0
        for wire in wires:
            assert not wire.ended
            await ends(wire)
            wire.close()

    played(story, APP, bodies=1000 * KIB)
