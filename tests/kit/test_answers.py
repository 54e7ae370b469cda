"""Answers over the border of an account: they reach who asked, and are no fault when nobody is there."""

import asyncio
import contextlib

import pytest
from nats.errors import NoRespondersError

from services.kit.bus import BusServer
from services.kit.credentials import trial_inbox
from tests.fixtures.waiting import until

pytestmark = [pytest.mark.live, pytest.mark.timeout(200)]


async def script_of(broker, trial_id, errors):
    return await broker.connect(
        broker.trial_credentials(trial_id), inbox_prefix=trial_inbox(trial_id).encode(), errors=errors
    )


async def service_of(broker, owner, errors):
    return await broker.connect(broker.authority.service(owner), errors=errors)


class Thinking:
    """Answers questions when it may, as one does that waits for news; notes what it was asked."""

    def __init__(self):
        self.messages, self.may = [], asyncio.Event()

    async def work(self, message):
        self.messages.append(message)
        await self.may.wait()
        return 0, f"about {message.subject.split('.')[2]}"


async def answer_to(script, trial_id):
    """Ask until somebody hears: a broker that has just started may not know yet who does elsewhere."""
    while True:
        with contextlib.suppress(NoRespondersError):
            return (await script.request(f"ask.trial.{trial_id}.searcher.news", b"{}", timeout=60)).data
        await asyncio.sleep(0.02)


def violations(broker):
    return [line for line in broker.log_lines() if "Violation" in line]


async def _after_a_restart(broker):
    errors, thinking = [], Thinking()
    service, script = await service_of(broker, "searcher", errors), await script_of(broker, 12, errors)
    await BusServer(service, "searcher").serve_scripts("news", thinking.work)
    await service.flush()
    waiting = asyncio.create_task(answer_to(script, 12))
    await until(lambda: thinking.messages)
    broker.stop()
    broker.start()
    await until(lambda: service.stats["reconnects"] and script.stats["reconnects"])
    await asyncio.gather(service.flush(), script.flush())
    waiting.cancel()
    errors.clear()
    thinking.may.set()
    # What a connection sends is dealt with in turn, so the answer from before is when this one has come.
    assert b"about 12" in await answer_to(script, 12)
    assert (len(thinking.messages), errors, violations(broker)) == (2, [], [])
    await script.close()
    await service.close()


def test_an_answer_after_a_restart_of_the_broker_is_no_violation(broker):
    asyncio.run(_after_a_restart(broker))


async def _to_one_who_has_left(broker):
    errors, thinking = [], Thinking()
    service, script = await service_of(broker, "searcher", errors), await script_of(broker, 12, errors)
    await BusServer(service, "searcher").serve_scripts("news", thinking.work)
    await service.flush()
    waiting = asyncio.create_task(answer_to(script, 12))
    await until(lambda: thinking.messages)
    waiting.cancel()
    await script.close()
    thinking.may.set()
    other = await script_of(broker, 13, errors)
    assert b"about 13" in await answer_to(other, 13)
    assert (errors, violations(broker)) == ([], [])
    await other.close()
    await service.close()


def test_an_answer_to_one_who_has_left_is_no_violation(broker):
    asyncio.run(_to_one_who_has_left(broker))


async def _answers_lead_nowhere_else(broker):
    errors, heard, thinking = [], [], Thinking()
    service, gateway = await service_of(broker, "searcher", errors), await service_of(broker, "gateway", [])
    script = await script_of(broker, 12, [])
    operator = await broker.connect(broker.authority.operator())
    await BusServer(service, "searcher").serve_scripts("news", thinking.work)

    async def hear(message):
        heard.append(message)

    async def answer(message):
        await message.respond(b"an answer")

    await service.subscribe("query.searcher.x", cb=answer)
    await operator.subscribe("control.>", cb=hear)
    await operator.flush()
    await service.flush()
    thinking.may.set()
    await answer_to(script, 12)
    await script.subscribe(f"{trial_inbox(12)}.>", cb=hear)
    # A service that has gone wrong names a third one's facts as the place for the answer.
    await gateway.publish("query.searcher.x", b"{}", reply="control.scheduler.decision")
    await until(lambda: any('"control.scheduler.decision"' in error for error in errors))
    # A name that was answered is used up, and a name that nobody was given leads nowhere.
    await script.publish("ask.trial.12.searcher.news", b"{}", reply=f"{trial_inbox(12)}.mine")
    await until(lambda: heard)
    used = thinking.messages[-1].reply
    assert used.startswith("_R_.")
    for subject in (used, "_R_.guessed.name"):
        await gateway.publish(subject, b"false")
    await gateway.flush()
    await script.flush()
    assert [b"about 12" in message.data for message in heard] == [True]
    for connection in (script, gateway, service, operator):
        await connection.close()


def test_an_answer_reaches_who_asked_once_and_states_nothing(broker):
    asyncio.run(_answers_lead_nowhere_else(broker))
