"""A script and a worker try everything with their own credentials, and reach nothing beyond their own.

Every subject, with every reply subject, as a publish and as a subscription, and every interface of streams.
A second trial and a second worker look on from within the same accounts. `-s` prints the table.
"""

import asyncio
import itertools
import json
from collections import defaultdict

import pytest
from nats.js.errors import NotFoundError

from det_contracts import subjects
from det_contracts.metrics_shards import FURTHER_SHARDS, MAX_SHARDS, OWNER, shard_subject
from services.kit.credentials import mint_trial, trial_inbox, worker_inbox
from services.kit.lease import Lease
from services.kit.log import Draft, Fence
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from services.kit.service_subjects import OPERATOR, OWNER_SUBJECTS, OWNERS, service_inbox
from services.scheduler.consumers import Consumers

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]

MINE, OTHER = "12", "13"
WORKER, NEIGHBOUR = "w1", "w2"
HELD = ("CONTROL", "REPORTS", "LOGS", "ORDERS", "WITNESS", "KV_leases")
QUIET_S = 0.4
"""A round of attempts has arrived when the broker has answered all of it; then is looked."""


def platform_subjects():
    """What services decide, hear and ask one another, and what the streams hold."""
    decided = [subjects.decision(owner) for owner in OWNERS]
    decided += [
        "control.scheduler.allocation.1.r.1.ended",
        "control.searcher.trial.12.ended",
        "control.gateway.x",
    ]
    asked = [
        "command.gateway.set_user",
        "command.searcher.kill_trial",
        "query.metrics.reports",
        "query.searcher.x",
    ]
    told = [subjects.orders(WORKER), subjects.orders(NEIGHBOUR), "health.look", "health.sign.searcher.x"]
    other = ["$KV.leases.searcher", "heartbeat.w1", "alive.12", "logs.1.r", "witness.rest.12"]
    return [*decided, *asked, *told, *other]


def senders():
    """What may be said in each one's name."""
    trials = [
        f"{what}.{id}{tail}"
        for id in (MINE, OTHER)
        for what, tail in (
            ("witness.trial", ""),
            ("witness.trial", ".x"),
            ("control.trial", ".progressed"),
            ("reports", ".metrics"),
            ("ask.trial", ".searcher.news"),
        )
    ]
    workers = [
        f"{what}.{id}{tail}"
        for id in (WORKER, NEIGHBOUR)
        for what, tail in (
            ("witness.worker", ""),
            ("control.worker", ".registered"),
            ("ask.worker", ".scheduler.holder"),
            ("ask.worker", ".intake.lines"),
            ("heartbeat", ""),
            ("health.sign.worker", ""),
            ("orders.heard", ""),
        )
    ]
    return trials + workers


def interfaces():
    """Every interface of the streams, for every stream."""
    plain = [
        "INFO",
        "STREAM.NAMES",
        "STREAM.LIST",
        "ACCOUNT.PURGE.x",
        "META.LEADER.STEPDOWN",
        "SERVER.REMOVE",
    ]
    of_stream = [
        f"{what}.{stream}{tail}"
        for stream in HELD
        for what, tail in (
            *itertools.product(
                (
                    "STREAM.CREATE",
                    "STREAM.UPDATE",
                    "STREAM.INFO",
                    "STREAM.DELETE",
                    "STREAM.PURGE",
                    "STREAM.SNAPSHOT",
                    "STREAM.RESTORE",
                    "STREAM.MSG.GET",
                    "STREAM.MSG.DELETE",
                    "STREAM.LEADER.STEPDOWN",
                    "STREAM.PEER.REMOVE",
                    "DIRECT.GET",
                    "CONSUMER.CREATE",
                    "CONSUMER.NAMES",
                    "CONSUMER.LIST",
                ),
                ("",),
            ),
            ("DIRECT.GET", ".control.gateway.decision"),
            ("CONSUMER.CREATE", ".mine.control.>"),
            ("CONSUMER.DURABLE.CREATE", ".mine"),
            ("CONSUMER.INFO", f".{WORKER}"),
            ("CONSUMER.DELETE", f".{WORKER}"),
            ("CONSUMER.PAUSE", f".{WORKER}"),
            ("CONSUMER.MSG.NEXT", f".{WORKER}"),
            ("CONSUMER.MSG.NEXT", f".{NEIGHBOUR}"),
            ("CONSUMER.UNPIN", f".{WORKER}"),
            ("CONSUMER.LEADER.STEPDOWN", f".{WORKER}"),
        )
    ]
    acks = [f"$JS.ACK.ORDERS.{id}.1.1.1.1.0" for id in (WORKER, NEIGHBOUR)] + ["$JS.FC.CONTROL.x.y"]
    server = ["$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.USER.INFO"]
    return [f"$JS.API.{one}" for one in (*plain, *of_stream)] + acks + server


def replies(own, other):
    """Where a stranger may want an answer, or stored bytes, to arrive."""
    return [
        "",
        f"{own}.reply",
        f"{other}.known-to-the-test",
        *platform_subjects()[:12],
        "control.trial.13.progressed",
        # What their account imports: an answer there would come in as somebody's word.
        "witness.trial.13",
        "reports.13.metrics",
        "ask.trial.13.searcher.news",
        "witness.worker.w2",
        "orders.heard.w2",
    ]


BODIES = [
    b"{}",
    json.dumps(
        {
            "stream_name": "CONTROL",
            "config": {
                "durable_name": "mine",
                "name": "mine",
                "deliver_subject": "command.gateway.set_user",
                "deliver_group": "gateway",
                "ack_policy": "none",
            },
        }
    ).encode(),
]


class Platform:
    """What the platform holds and hears; whatever comes there is somebody's word."""

    def __init__(self, broker):
        self.broker = broker
        self.heard = defaultdict(int)
        self.errors = []

    async def start(self):
        self.service = await self.broker.connect()
        await ensure_streams(self.service.jetstream())
        self.lease = asyncio.create_task(Lease(self.service, "searcher", "a").hold())
        self.log = JetStreamLog(self.service)
        await self.log.append(Draft("control.gateway.secret", b"salt and hash", "s"))
        for worker in (WORKER, NEIGHBOUR):
            await Consumers(self.service).ensure(worker)
            subject = subjects.orders(worker)
            await self.log.append_batch(
                [Draft(subject, b"orders of " + worker.encode(), worker)], fence=Fence(subject, 0)
            )
        for pattern in ("command.>", "query.>", "ask.>", "health.>", "heartbeat.>", "alive.>"):
            await self.service.subscribe(pattern, cb=self._hear)
        await self.service.flush()
        return self

    async def _hear(self, message):
        self.heard[message.subject] += 1
        if message.subject.startswith("ask."):
            await message.respond(b"about " + message.subject.split(".")[2].encode())

    async def states(self):
        """Of each stream, how many messages on which subject."""
        found = {}
        for stream in HELD:
            body = json.dumps({"subjects_filter": ">"}).encode()
            answer = await self.service.request(f"$JS.API.STREAM.INFO.{stream}", body, timeout=60)
            told = json.loads(answer.data)
            if stream != "KV_leases":
                found |= {f"{stream} {one}": n for one, n in (told["state"].get("subjects") or {}).items()}
            if stream == "ORDERS":
                # Of a subject the newest is kept, so their number tells nothing.
                found["ORDERS last"] = told["state"]["last_seq"]
            found[f"{stream} consumers"] = told["state"]["consumer_count"]
            found[f"{stream} config"] = json.dumps(told["config"], sort_keys=True)
        return found

    async def close(self):
        self.lease.cancel()
        await asyncio.gather(self.lease, return_exceptions=True)
        await self.service.close()


class Stranger:
    """A connection with a real credential that notes what it hears."""

    def __init__(self, platform, credentials, inbox):
        self.platform, self.credentials, self.inbox = platform, credentials, inbox
        self.heard = []

    async def start(self):
        self.errors = []
        self.connection = await self.platform.broker.connect(
            self.credentials, inbox_prefix=self.inbox.encode(), errors=self.errors
        )
        await self.connection.subscribe(f"{self.inbox}.>", cb=self._hear)
        await self.connection.flush()
        return self

    async def _hear(self, message):
        self.heard.append((message.subject, message.data))

    async def say(self, subject, body, reply="", headers=None):
        await self.connection.publish(subject, body, reply=reply, headers=headers)

    async def settle(self):
        """All of it has reached the broker, and what came of it is here."""
        for _ in range(2):
            await self.connection.flush()
            await self.platform.service.flush()
        await asyncio.sleep(QUIET_S)
        await self.connection.flush()


async def tried(stranger, platform):
    """Everything, with every reply; returns what changed and was heard, by subject."""
    before, platform.heard = await platform.states(), defaultdict(int)
    other = trial_inbox(13) if stranger.inbox == trial_inbox(12) else worker_inbox(NEIGHBOUR)
    for subject in [*platform_subjects(), *senders(), *interfaces()]:
        for reply in replies(stranger.inbox, other):
            for body in BODIES:
                await stranger.say(subject, body, reply)
    await stranger.settle()
    after = await platform.states()
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    return changed, dict(platform.heard)


def run(broker, story):
    async def work():
        platform = await Platform(broker).start()
        strangers = []

        async def enter(credentials, inbox):
            strangers.append(await Stranger(platform, credentials, inbox).start())
            return strangers[-1]

        try:
            async with asyncio.timeout(200):
                await story(platform, enter)
        finally:
            for one in strangers:
                await one.connection.close()
            await platform.close()

    asyncio.run(work())


async def two_trials(platform, enter):
    authority = platform.broker.authority
    return [
        await enter(mint_trial(authority.trial_signing_seed, authority.scripts, id), trial_inbox(id))
        for id in (int(MINE), int(OTHER))
    ]


async def two_workers(platform, enter):
    authority = platform.broker.authority
    return [await enter(authority.worker(id), worker_inbox(id)) for id in (WORKER, NEIGHBOUR)]


def table(who, rows):
    print(f"\n{who}: what came of everything that it tried")
    for row in sorted(rows):
        print(f"  {row}")


def test_a_script_states_reports_and_asks_in_its_own_name_and_nothing_else(broker):
    async def story(platform, enter):
        mine, other = await two_trials(platform, enter)
        changed, heard = await tried(mine, platform)
        table("script of trial 12", [*changed, *(f"heard by a service: {one}" for one in heard)])
        assert changed == {"WITNESS witness.trial.12", "REPORTS reports.12.metrics"}
        assert set(heard) == {"ask.trial.12.searcher.news"}
        assert not any(b"salt" in body or b"orders of" in body for _, body in mine.heard)
        # Its answers, and only those, came where it wanted them within its account.
        assert {body for _, body in other.heard} <= {b"about 12"} | stored(other)

    run(broker, story)


def stored(stranger):
    """Acknowledgements of streams, which say nothing but a place."""
    return {body for _, body in stranger.heard if body.startswith((b'{"stream"', b'{"error"'))}


def test_a_worker_states_facts_and_signs_of_its_own_and_nothing_else(broker):
    async def story(platform, enter):
        mine, _ = await two_workers(platform, enter)
        changed, heard = await tried(mine, platform)
        table("worker w1", [*changed, *(f"heard by a service: {one}" for one in heard)])
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


def altered(told):
    """What would make a stream forget, or say what it holds in others' names."""
    republished = {"src": ">", "dest": "control.searcher.>"}
    return [told | {"max_age": 10**12}, told | {"republish": republished}, told | {"subjects": ["any.>"]}]


def test_no_service_but_the_intake_says_how_streams_are_and_none_takes_consumers_of_others(broker):
    async def story(platform, enter):
        for owner in OWNERS:
            own = await enter(platform.broker.authority.service(owner), "_INBOX")
            before = await platform.states()
            for stream in HELD:
                told = json.loads(before[f"{stream} config"])
                for config in altered(told):
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

        async def kept():
            return (await js.stream_info("LOGS")).config.max_bytes

        await ensure_streams(searcher.jetstream(), keep_bytes=1 << 30, adjust=False)
        assert await kept() == 1 << 30
        await ensure_streams(searcher.jetstream(), keep_bytes=1 << 20, adjust=False)
        assert await kept() == 1 << 30
        await ensure_streams(intake.jetstream(), keep_bytes=1 << 20)
        assert await kept() == 1 << 20
        for connection in (operator, searcher, intake):
            await connection.close()

    asyncio.run(work())


def test_no_service_takes_the_lease_of_another_or_signs_for_it(broker):
    """Whoever held another's lease would keep all of its replicas from deciding."""

    async def story(platform, enter):
        for owner in OWNERS:
            own = await enter(platform.broker.authority.service(owner), "_INBOX")
            platform.heard = defaultdict(int)
            others = [one for one in (*OWNERS, "nobody") if one != owner]
            for other in others:
                await own.say(subjects.health_sign(other, "x"), b"{}")
                await own.say(f"$KV.{subjects.LEASES}.{other}", owner.encode())
            await own.say(subjects.health_sign(owner, "x"), b"{}")
            stored = await own.connection.request(f"$KV.{subjects.LEASES}.{owner}", b"mine", timeout=60)
            assert "seq" in json.loads(stored.data), owner
            await own.settle()
            signs = {one for one in platform.heard if one.startswith("health.sign.")}
            assert signs == {subjects.health_sign(owner, "x")}, owner
            refused = " ".join(own.errors).lower()
            assert [one for one in others if f'{subjects.LEASES}.{one}"' not in refused] == [], owner

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
    **{one: {f"query.{shard_subject(n)}" for n in range(1, MAX_SHARDS + 1)} for one in SHARDS},
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
            heard = {one for one in platform.heard if one.startswith(("command.", "query."))}
            allowed = ASKS.get(owner, set())

            def may(subject, allowed=allowed):
                kind, other, name = subject.split(".")
                return not allowed.isdisjoint({kind, f"{kind}.{other}", f"{kind}.*.{name}", subject})

            said = {subject.format(other) for other in OWNERS for subject in SPOKEN}
            assert heard == {subject for subject in said if may(subject)}, owner

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
                one for one in spoken if f".{owner}." in one and not one.startswith(("$", "reports", "logs"))
            }
            assert heard == mine | extra, owner

    run(broker, story)


def test_a_service_hears_no_answer_that_another_is_given(broker):
    """Also not with a wider subscription, and the log arrives in an inbox as well."""

    async def story(platform, enter):
        heard = {}
        for owner in OWNERS:
            own = await enter(platform.broker.authority.service(owner), service_inbox(owner))
            heard[owner] = found = set()

            async def hear(message, found=found):
                # Beside what the platform of this test is answered.
                if message.subject.endswith(".b"):
                    found.add(message.subject)

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
            while not all("_INBOX.earlier.b" in one for one in heard.values()):
                await asyncio.sleep(0.01)
        assert heard == {owner: {f"{service_inbox(owner)}.a.b", "_INBOX.earlier.b"} for owner in OWNERS}

    run(broker, story)
