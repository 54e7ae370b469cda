"""A service states, asks, hears and holds nothing in another service's place."""

import asyncio
import json
from collections import defaultdict

import pytest
from nats.js.errors import NotFoundError

from det_contracts import subjects
from det_contracts.metrics_shards import FURTHER_SHARDS, MAX_SHARDS, OWNER, shard_subject
from services.kit.log_jetstream import ensure_streams
from services.kit.service_subjects import OPERATOR, OWNER_SUBJECTS, OWNERS, service_inbox
from tests.kit.hostile_platform import (
    HELD,
    NEIGHBOUR,
    WORKER,
    platform_subjects,
    run,
)

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]


def altered(stream_config):
    """What would make a stream forget, or say what it holds in others' names."""
    republished = {"src": ">", "dest": "control.searcher.>"}
    return [
        stream_config | {"max_age": 10**12},
        stream_config | {"republish": republished},
        stream_config | {"subjects": ["any.>"]},
    ]


def test_no_service_but_the_intake_says_how_streams_are_and_none_takes_consumers_of_others(broker):
    async def story(platform, enter):
        for owner in OWNERS:
            own = await enter(platform.broker.authority.service(owner), "_INBOX")
            before = await platform.states()
            for stream in HELD:
                answer = json.loads(before[f"{stream} config"])
                for config in altered(answer):
                    body = json.dumps(config).encode()
                    if owner != subjects.INTAKE:
                        await own.say(f"$JS.API.STREAM.UPDATE.{stream}", body)
                    await own.say(f"$JS.API.STREAM.CREATE.{stream}", body)
                    mine = json.dumps(config | {"name": "MINE", "subjects": ["mine.>"]}).encode()
                    await own.say("$JS.API.STREAM.CREATE.MINE", mine)
                for what in ("DELETE", "PURGE", "SNAPSHOT", "LEADER.STEPDOWN"):
                    if f"$JS.API.STREAM.{what}.{stream}" not in OWNER_SUBJECTS.get(owner, ()):
                        await own.say(f"$JS.API.STREAM.{what}.{stream}", b"{}")
            for worker in (WORKER, NEIGHBOUR):
                for what in ("DELETE", "PAUSE", "UNPIN", "MSG.NEXT"):
                    await own.say(f"$JS.API.CONSUMER.{what}.ORDERS.{worker}", b"{}", "_INBOX.taken")
            await own.settle()
            assert await platform.states() == before, owner
            with pytest.raises(NotFoundError):
                await platform.service.jetstream().stream_info("MINE")
            assert not any(b"orders of" in body for _, body in own.heard), owner

    run(broker, story)


def test_the_intake_brings_streams_to_their_settings_and_others_only_make_them(broker):
    async def work():
        operator = await broker.connect()
        searcher = await broker.connect(broker.authority.service("searcher"))
        intake = await broker.connect(broker.authority.service(subjects.INTAKE))
        js = operator.jetstream()

        async def max_bytes():
            return (await js.stream_info("LOGS")).config.max_bytes

        await ensure_streams(searcher.jetstream(), keep_bytes=1 << 30, adjust=False)
        assert await max_bytes() == 1 << 30
        await ensure_streams(searcher.jetstream(), keep_bytes=1 << 20, adjust=False)
        assert await max_bytes() == 1 << 30
        await ensure_streams(intake.jetstream(), keep_bytes=1 << 20)
        assert await max_bytes() == 1 << 20
        for connection in (operator, searcher, intake):
            await connection.close()

    asyncio.run(work())


def test_no_service_takes_the_lease_of_another_or_signs_for_it(broker):
    """Whoever held another's lease would keep all of its replicas from deciding."""

    async def story(platform, enter):
        for owner in OWNERS:
            own = await enter(platform.broker.authority.service(owner), "_INBOX")
            platform.heard = defaultdict(int)
            others = [other for other in (*OWNERS, "nobody") if other != owner]
            for other in others:
                await own.say(subjects.health_sign(other, "x"), b"{}")
                await own.say(f"$KV.{subjects.LEASES}.{other}", owner.encode())
            await own.say(subjects.health_sign(owner, "x"), b"{}")
            stored = await own.connection.request(f"$KV.{subjects.LEASES}.{owner}", b"mine", timeout=60)
            assert "seq" in json.loads(stored.data), owner
            await own.settle()
            signs = {subject for subject in platform.heard if subject.startswith("health.sign.")}
            assert signs == {subjects.health_sign(owner, "x")}, owner
            refused = " ".join(own.errors).lower()
            assert [other for other in others if f'{subjects.LEASES}.{other}"' not in refused] == [], owner

    run(broker, story)


def test_nobody_but_its_owner_states_an_owners_facts(broker):
    async def story(platform, enter):
        for owner in OWNERS:
            own = await enter(platform.broker.authority.service(owner), "_INBOX")
            before = await platform.states()
            for subject in (
                *platform_subjects(),
                "control.trial.13.progressed",
                "control.worker.w2.registered",
            ):
                if not subject.startswith(("logs", "witness")):
                    await own.say(subject, b"{}")
            await own.settle()
            after = await platform.states()
            changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
            control = {key.partition(" ")[2].split(".")[1] for key in changed if key.startswith("CONTROL ")}
            # What it admits.
            allowed = {owner} | ({"trial", "worker"} if owner == subjects.INTAKE else set())
            assert control == allowed, owner
            orders = {key for key in changed if key.startswith("ORDERS")}
            assert bool(orders) == (owner == "scheduler"), orders
            # What the gateway says for scripts, and the intake for scripts and workers, is not decided.
            others = {key.partition(" ")[0] for key in changed} - {"CONTROL", "ORDERS"}
            assert not others or owner in ("gateway", subjects.INTAKE), others

    run(broker, story)


SHARDS = (OWNER, *FURTHER_SHARDS)
SPOKEN = ("command.{}.x", "command.{}.report_workers", "query.{}.x", "query.{}.saved")
ASKS = {
    "gateway": {"command", "query"},
    "searcher": {"query.metrics", "query.checkpoints"},
    "provisioner": {"query.scheduler", "command.scheduler.report_workers"},
    subjects.ARCHIVE: {"query.*.saved"},
    **{shard: {f"query.{shard_subject(n)}" for n in range(1, MAX_SHARDS + 1)} for shard in SHARDS},
}


def test_a_service_asks_what_it_needs_and_no_other_acts_for_people(broker):
    """A command says itself for whom it is: whoever may send one speaks for everybody."""

    async def story(platform, enter):
        for owner in OWNERS:
            own = await enter(platform.broker.authority.service(owner), "_INBOX")
            platform.heard = defaultdict(int)
            for other in OWNERS:
                for subject in SPOKEN:
                    await own.say(subject.format(other), b"{}")
            await own.settle()
            heard = {subject for subject in platform.heard if subject.startswith(("command.", "query."))}
            allowed = ASKS.get(owner, set())

            def may(subject, allowed=allowed):
                kind, other, name = subject.split(".")
                return not allowed.isdisjoint({kind, f"{kind}.{other}", f"{kind}.*.{name}", subject})

            sent = {subject.format(other) for other in OWNERS for subject in SPOKEN}
            assert heard == {subject for subject in sent if may(subject)}, owner

    run(broker, story)


def test_a_service_hears_what_it_is_asked_and_nothing_that_others_are(broker):
    """Otherwise one of them could answer in another's place, or read what people send."""

    async def story(platform, enter):
        spoken = [f"{kind}.{owner}.x" for kind in ("command", "query") for owner in OWNERS]
        spoken += [f"ask.{kind}.1.{owner}.x" for kind in ("trial", "worker") for owner in OWNERS]
        spoken += ["witness.trial.12", "reports.12.metrics", "logs.1.r", "$KV.leases.searcher", "alive.12"]
        for owner in OWNERS:
            own = await enter(platform.broker.authority.service(owner), "_INBOX")
            heard = set()

            async def hear(message, heard=heard):
                heard.add(message.subject)

            for pattern in (">", "command.>", "query.>", "ask.>", "$KV.>", "$JS.>", *spoken):
                await own.connection.subscribe(pattern, cb=hear)
            await own.settle()
            for subject in spoken:
                await platform.service.publish(subject, b"{}")
            await own.settle()
            extra = {"searcher": {"alive.12"}, subjects.INTAKE: {"ask.worker.1.intake.x"}}.get(owner, set())
            if owner in FURTHER_SHARDS:
                # Each of the processes that share the trials is asked for all of them.
                extra = {"query.metrics.x", "ask.trial.1.metrics.x"}
            mine = {
                subject
                for subject in spoken
                if f".{owner}." in subject and not subject.startswith(("$", "reports", "logs"))
            }
            assert heard == mine | extra, owner

    run(broker, story)


def test_a_service_hears_no_answer_that_another_is_given(broker):
    """Also not with a wider subscription, and the log arrives in an inbox as well."""

    async def story(platform, enter):
        heard = {}
        for owner in OWNERS:
            own = await enter(platform.broker.authority.service(owner), service_inbox(owner))
            heard[owner] = received = set()

            async def hear(message, received=received):
                # Beside what the platform of this test is answered.
                if message.subject.endswith(".b"):
                    received.add(message.subject)

            inboxes = [f"{service_inbox(other)}.*.>" for other in OWNERS]
            for pattern in ("_INBOX.>", "_INBOX.*.>", "_INBOX.*.*", *inboxes):
                await own.connection.subscribe(pattern, cb=hear)
            await own.settle()
        # Neither what the operator's tools are answered, such as the copies of a backup.
        for owner in (*OWNERS, OPERATOR):
            await platform.service.publish(f"{service_inbox(owner)}.a.b", b"answer")
        # A service of the release before answers, and is answered, in inboxes that are shared.
        await platform.service.publish("_INBOX.earlier.b", b"answer")
        await platform.service.flush()
        async with asyncio.timeout(60):
            while not all("_INBOX.earlier.b" in received for received in heard.values()):
                await asyncio.sleep(0.01)
        assert heard == {owner: {f"{service_inbox(owner)}.a.b", "_INBOX.earlier.b"} for owner in OWNERS}

    run(broker, story)
