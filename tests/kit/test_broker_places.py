"""What one script or worker may take of the broker leaves places for everybody else."""

import asyncio
import resource

import pytest
from nats.aio.client import Client
from nats.errors import Error as NatsError

from services.kit import broker as kit
from services.kit.credentials import MAX_CONNECTIONS, MAX_SUBSCRIPTIONS, trial_inbox, worker_inbox
from tests.fixtures.broker import RealBroker

PLACES = 12


@pytest.fixture
def small_broker(tmp_path, monkeypatch):
    """One that takes few connections."""
    monkeypatch.setattr(kit, "_max_connections", lambda: PLACES)
    server = RealBroker(tmp_path).start()
    yield server
    server.close()


async def admitted(broker, credentials, inbox, number):
    """As many connections as there are places for, up to `number`."""
    path = broker.folder / "mine.creds"
    path.write_text(credentials)
    connections = []
    for _ in range(number):
        connection = Client()
        try:
            await connection.connect(
                broker.url, user_credentials=str(path), inbox_prefix=inbox.encode(), allow_reconnect=False
            )
        except NatsError:
            # The client leaves the socket of a refused connection open.
            if (transport := connection._transport) is not None:
                transport.close()
            await connection.close()
            break
        connections.append(connection)
    return connections


async def close(connections):
    for connection in connections:
        await connection.close()


@pytest.mark.live
def test_scripts_and_workers_take_no_place_of_a_service(small_broker):
    async def work():
        scripts = await admitted(small_broker, small_broker.trial_credentials(12), trial_inbox(12), PLACES)
        workers = await admitted(
            small_broker, small_broker.authority.worker("w1"), worker_inbox("w1"), PLACES
        )
        service = await small_broker.connect(small_broker.authority.service("searcher"))
        await service.flush()
        assert (len(scripts), len(workers)) == (PLACES // 2, PLACES // 4)
        # Another script waits until there is a place, and then goes on by itself.
        waiting = asyncio.ensure_future(
            small_broker.connect(small_broker.trial_credentials(13), inbox_prefix=b"_INBOX.13")
        )
        await asyncio.sleep(0.3)
        assert not waiting.done()
        await close(scripts)
        await (await asyncio.wait_for(waiting, 30)).close()
        await close([*workers, service])

    asyncio.run(work())


@pytest.mark.live
@pytest.mark.parametrize("who", ["script", "worker"])
def test_a_connection_has_so_many_subscriptions(broker, who):
    """Each is kept in the broker's memory: half a million took 360 MiB."""

    async def work():
        credentials, inbox = {
            "script": (broker.trial_credentials(12), trial_inbox(12)),
            "worker": (broker.authority.worker("w1"), worker_inbox("w1")),
        }[who]
        connection = await broker.connect(credentials, inbox_prefix=inbox.encode())
        for number in range(MAX_SUBSCRIPTIONS):
            await connection.subscribe(f"{inbox}.{number}")
        await connection.flush()
        await connection.subscribe(f"{inbox}.more")
        async with asyncio.timeout(30):
            while not connection.is_closed:
                await asyncio.sleep(0.01)
        assert "maximum subscriptions" in str(connection.last_error)

    asyncio.run(work())


def test_half_of_the_files_that_may_be_open_are_left_to_streams(monkeypatch):
    def max_connections(limit):
        monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
        return kit._max_connections()

    assert max_connections(4096) == 2048
    assert max_connections(1 << 20) == max_connections(resource.RLIM_INFINITY) == MAX_CONNECTIONS
