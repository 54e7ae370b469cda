"""A script and a worker try everything with their own credentials, and reach nothing beyond their own.

Every subject, with every reply subject, as a publish and as a subscription, and every interface of streams.
A second trial and a second worker look on from within the same accounts. `-s` prints the table.
"""

import asyncio

import pytest

from det_contracts import subjects
from services.kit.log import Draft, Fence
from tests.kit.hostile_platform import (
    platform_subjects,
    run,
    senders,
    stored,
    table,
    tried,
    two_trials,
    two_workers,
)

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]


def test_a_script_states_reports_and_asks_in_its_own_name_and_nothing_else(broker):
    async def story(platform, enter):
        mine, other = await two_trials(platform, enter)
        changed, heard = await tried(mine, platform)
        table("script of trial 12", [*changed, *(f"heard by a service: {subject}" for subject in heard)])
        assert changed == {"WITNESS witness.trial.12", "REPORTS reports.12.metrics"}
        assert set(heard) == {"ask.trial.12.searcher.news"}
        assert not any(b"salt" in body or b"orders of" in body for _, body in mine.heard)
        # Its answers, and only those, came where it wanted them within its account.
        assert {body for _, body in other.heard} <= {b"about 12"} | stored(other)

    run(broker, story)


def test_a_worker_states_facts_and_signs_of_its_own_and_nothing_else(broker):
    async def story(platform, enter):
        mine, _ = await two_workers(platform, enter)
        changed, heard = await tried(mine, platform)
        table("worker w1", [*changed, *(f"heard by a service: {subject}" for subject in heard)])
        assert changed == {
            "WITNESS witness.worker.w1",
            "ORDERS orders.heard.w1",
            "ORDERS last",
        }
        assert set(heard) == {
            "ask.worker.w1.scheduler.holder",
            "ask.worker.w1.intake.lines",
            "heartbeat.w1",
            "health.sign.worker.w1",
        }
        assert not any(b"salt" in body or b"orders of w2" in body for _, body in mine.heard)

    run(broker, story)


def test_nobody_hears_anything_but_their_own_inbox(broker):
    async def story(platform, enter):
        for mine, other in (await two_trials(platform, enter), await two_workers(platform, enter)):
            wanted = [
                *platform_subjects(),
                *senders(),
                "control.>",
                "witness.>",
                "orders.>",
                "_INBOX.>",
                ">",
                "*",
            ]
            for pattern in [*wanted, f"{other.inbox}.>", f"{other.inbox}.*", "$JS.>", "$SYS.>", "_R_.>"]:
                before = len(mine.errors)
                await mine.connection.subscribe(pattern, cb=mine._hear)
                await mine.connection.flush()
                await asyncio.sleep(0)
                async with asyncio.timeout(60):
                    while len(mine.errors) == before:
                        await asyncio.sleep(0.005)
                assert "subscription" in mine.errors[-1], pattern
            await other.connection.publish(f"{other.inbox}.a-secret-name", b"secret")
            await other.settle()
            assert not any(b"secret" in body for _, body in mine.heard)

    run(broker, story)


def test_ids_of_others_and_batches_that_never_end_hold_up_nobody(broker):
    async def story(platform, enter):
        mine, _ = await two_trials(platform, enter)
        for number in range(60):
            batch = {"Nats-Batch-Id": f"b{number}", "Nats-Batch-Sequence": "1"}
            await mine.say(subjects.witness_of_trial(12), b"{}", f"{mine.inbox}.r", batch)
            await mine.say(subjects.reports(12), b"{}", f"{mine.inbox}.r", batch)
        for id in ("decision-1", "exited-1.r.1-w1", "checkpoint-u"):
            for subject in (subjects.witness_of_trial(12), subjects.reports(12)):
                await mine.say(subject, b"{}", f"{mine.inbox}.r", {"Nats-Msg-Id": id})
        await mine.settle()
        fenced = Fence(subjects.decision("searcher"), 0)
        drafts = [Draft(fenced.subject, b"{}", "decision-1"), Draft("control.searcher.x.1.y", b"{}", "e1")]
        at = await platform.log.append_batch(drafts, fence=fenced)
        assert at == (await platform.log.bounds(subjects.CONTROL))[1]
        fact = Draft("control.worker.w1.allocation_exited", b"{}", "exited-1.r.1-w1")
        assert await platform.log.append(fact) == at + 1

    run(broker, story)
