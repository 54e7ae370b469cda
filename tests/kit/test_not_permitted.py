"""What the broker does not permit fails at once, and says to whom, and what to do."""

import asyncio

import pytest
from structlog.testing import capture_logs

from det_contracts.problems import Refused
from det_contracts.queries import Jobs
from services.kit.bus import BusClient
from services.kit.connection import close, connect
from services.kit.jetstream_api import request_with_retry
from services.kit.log import Draft, NeverStored
from services.kit.log_jetstream import JetStreamLog
from services.kit.nats_client import NotPermitted
from services.kit.service_subjects import service_inbox
from services.kit.settings import ServiceSettings
from tests.fixtures.waiting import until

pytestmark = [pytest.mark.live, pytest.mark.timeout(200)]


@pytest.fixture
def searcher(broker, tmp_path):
    """Runs a coroutine with a connection of the searcher. Returns what was logged."""
    path = tmp_path / "searcher.creds"
    path.write_text(broker.authority.service("searcher"))
    settings = ServiceSettings(nats_url=broker.url, nats_credentials=path)

    async def work(use):
        connection = await connect(settings, "searcher", inbox=service_inbox("searcher"))
        try:
            async with asyncio.timeout(60):
                await use(connection)
        finally:
            await close(connection)

    def run(use):
        with capture_logs() as lines:
            asyncio.run(work(lambda connection: use(connection, lines)))
        return lines

    return run


def test_a_request_fails_at_once_with_the_user_the_subject_and_the_advice(searcher):
    async def ask(connection, _):
        with pytest.raises(Refused) as refused:
            await BusClient(connection).query(Jobs())
        text = refused.value.problem.message
        assert "does not let user 'searcher' publish to query.scheduler.jobs" in text
        assert "searcher.creds" in text
        assert "services.local.stack --keys" in text
        # What is permitted goes on.
        assert "error" not in await request_with_retry(connection, "INFO", {})

    (line,) = [line for line in searcher(ask) if line["event"] == "broker.not_permitted"]
    assert (line["log_level"], "publish to query.scheduler.jobs" in line["error"]) == ("error", True)


def test_all_requests_for_a_subject_fail_and_are_logged_once(searcher):
    async def ask(connection, _):
        purges = [request_with_retry(connection, "STREAM.PURGE.CONTROL", {}, 10_000.0) for _ in range(20)]
        failures = await asyncio.gather(*purges, return_exceptions=True)
        assert {type(failure) for failure in failures} == {NotPermitted}
        assert "$JS.API.STREAM.PURGE.CONTROL" in str(failures[0])

    assert [line["event"] for line in searcher(ask)].count("broker.not_permitted") == 1


def test_another_owners_facts_are_never_stored_and_that_is_said_at_once(searcher):
    async def append(connection, _):
        with pytest.raises(NeverStored, match=r"user 'searcher' publish to control\.scheduler\.Job\.x"):
            await JetStreamLog(connection).append(Draft("control.scheduler.Job.x", b"{}", "1"))

    searcher(append)


def test_what_may_not_be_heard_is_logged(searcher):
    async def listen(connection, lines):
        await connection.subscribe("command.scheduler.kill", cb=None)
        await until(lambda: any(line["event"] == "broker.not_permitted" for line in lines))

    (line,) = [line for line in searcher(listen) if line["event"] == "broker.not_permitted"]
    assert "user 'searcher' subscribe to command.scheduler.kill" in line["error"]
