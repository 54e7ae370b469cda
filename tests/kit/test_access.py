"""Who may say what on the bus, and who leads."""

import asyncio
import gc

import pytest
from nats.errors import Error as NatsError

from services.kit.credentials import Authority, trial_inbox
from services.kit.lease import Lease
from services.kit.log import Draft
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from tests.fixtures.waiting import until

pytestmark = [pytest.mark.live, pytest.mark.timeout(200)]


async def _trial(broker, trial_id, errors):
    inbox = trial_inbox(trial_id).encode()
    return await broker.connect(broker.trial_credentials(trial_id), inbox_prefix=inbox, errors=errors)


def test_a_script_speaks_of_its_own_trial_only(broker):
    async def work():
        service = await broker.connect()
        await ensure_streams(service.jetstream())
        errors = []
        script = await _trial(broker, 12, errors)
        await JetStreamLog(script).append(Draft("witness.trial.12", b"{}", "a"))
        await JetStreamLog(script).append(Draft("reports.12.metrics", b"{}", "b"))
        foreign = [
            "witness.trial.13",
            "witness.rest.12",
            "witness.worker.12",
            "control.trial.12.progressed",
            "control.searcher.trial.12.ended",
            "reports.1.metrics",
            "logs.x",
            "health.look",
            "health.sign.searcher.x",
        ]
        for subject in [*foreign, "command.searcher.kill_trial", "query.trial.13.metrics.best_validation"]:
            await script.publish(subject, b"{}")
            await until(lambda subject=subject: any(f'"{subject}"' in error for error in errors))
        await script.subscribe("control.>")
        await until(lambda: any("subscription" in error for error in errors))
        await script.close()
        await service.close()

    asyncio.run(work())


def test_a_worker_states_facts_and_no_decisions(broker):
    async def work():
        service = await broker.connect()
        await ensure_streams(service.jetstream())
        errors = []
        worker = await broker.connect(broker.authority.worker("w"), inbox_prefix=b"_INBOX.w", errors=errors)
        await JetStreamLog(worker).append(Draft("witness.worker.w", b"{}", "a"))
        decided = ("control.scheduler.decision", "control.worker.w.registered", "witness.trial.1")
        for subject in (*decided, "health.look", "health.sign.searcher.x"):
            await worker.publish(subject, b"{}")
            await until(lambda subject=subject: any(subject in error for error in errors))
        heard = set()

        async def hear(message):
            heard.add(message.data)

        await service.subscribe("health.sign.*.*", cb=hear)
        await service.flush()
        async with asyncio.timeout(60):
            # Signs are repeated: one is lost while the broker still ties two accounts together.
            while heard != {b"a sign"}:
                await worker.publish("health.sign.worker.w", b"a sign")
                await worker.flush()
                await asyncio.sleep(0.02)
        await worker.subscribe("health.look", cb=hear)
        await until(lambda: any("subscription" in error for error in errors))
        await worker.close()
        await service.close()

    asyncio.run(work())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_unknown_credentials_are_refused(broker):
    async def work():
        with pytest.raises((NatsError, OSError)):
            await broker.connect(
                Authority.create().operator(), max_reconnect_attempts=1, allow_reconnect=False
            )

    asyncio.run(work())
    gc.collect()


# The client library leaves the socket of a broken connection to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_a_credential_may_expire(broker):
    async def work():
        credentials = broker.trial_credentials(1, valid_s=2)
        options = {"inbox_prefix": b"_INBOX.1", "allow_reconnect": False}
        script = await broker.connect(credentials, **options)
        assert script.is_connected
        await until(lambda: not script.is_connected)
        await script.close()

    asyncio.run(work())
    gc.collect()


def test_one_leads_and_another_takes_over(broker):
    async def work():
        connections = [await broker.connect() for _ in range(3)]
        first, second, third = (Lease(c, "searcher", str(n)) for n, c in enumerate(connections))
        tasks = [asyncio.create_task(first.hold())]
        await until(lambda: first.active)
        tasks.append(asyncio.create_task(second.hold()))
        tasks[0].cancel()
        await until(lambda: second.active)
        assert not first.active
        tasks.append(asyncio.create_task(third.hold()))
        second._release = _nothing
        tasks[1].cancel()
        await until(lambda: third.active)
        tasks[2].cancel()
        await asyncio.wait(tasks)
        for connection in connections:
            await connection.close()

    asyncio.run(work())


def test_who_leads_goes_on_when_only_the_answer_got_lost(broker):
    async def work():
        connection = await broker.connect()
        lease = Lease(connection, "searcher", "a")
        task = asyncio.create_task(lease.hold())
        await until(lambda: lease.active)
        renewed, states = [], []
        update, set_active = lease._bucket.update, lease._set

        async def without_answer(*arguments, **options):
            renewed.append(await update(*arguments, **options))
            if len(renewed) == 1:
                raise TimeoutError
            return renewed[-1]

        lease._bucket.update = without_answer
        lease._set = lambda active: (states.append(active), set_active(active))
        await until(lambda: len(renewed) == 3)
        assert set(states) == {True}
        task.cancel()
        await asyncio.wait([task])
        await connection.close()

    asyncio.run(work())


async def _nothing():
    return None
