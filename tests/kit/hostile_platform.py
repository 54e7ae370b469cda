"""A platform that notes whatever reaches it, and strangers that try everything with their own credentials."""

import asyncio
import itertools
import json
from collections import defaultdict

from det_contracts import subjects
from services.kit.credentials import mint_trial, trial_inbox, worker_inbox
from services.kit.lease import Lease
from services.kit.log import Draft, Fence
from services.kit.log_jetstream import JetStreamLog, ensure_streams
from services.kit.service_subjects import OWNERS
from services.scheduler.consumers import Consumers

MINE, OTHER = "12", "13"
WORKER, NEIGHBOUR = "w1", "w2"
HELD = ("CONTROL", "REPORTS", "LOGS", "ORDERS", "WITNESS", "KV_leases")
QUIET_S = 0.1
"""Attempts are over when the broker has answered all of them, and then nothing comes of them for so long."""


def platform_subjects():
    """What services decide, hear and ask one another, and what the streams hold."""
    decided = [subjects.decision(owner) for owner in OWNERS]
    decided += [
        "control.scheduler.allocation.1.r.1.ended",
        "control.searcher.trial.12.ended",
        "control.gateway.x",
    ]
    questions = [
        "command.gateway.set_user",
        "command.searcher.kill_trial",
        "query.metrics.reports",
        "query.searcher.x",
    ]
    announced = [subjects.orders(WORKER), subjects.orders(NEIGHBOUR), "health.look", "health.sign.searcher.x"]
    other = ["$KV.leases.searcher", "heartbeat.w1", "alive.12", "logs.1.r", "witness.rest.12"]
    return [*decided, *questions, *announced, *other]


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
    return [f"$JS.API.{interface}" for interface in (*plain, *of_stream)] + acks + server


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
        states = {}
        for stream in HELD:
            body = json.dumps({"subjects_filter": ">"}).encode()
            answer = await self.service.request(f"$JS.API.STREAM.INFO.{stream}", body, timeout=60)
            info = json.loads(answer.data)
            if stream != "KV_leases":
                states |= {
                    f"{stream} {subject}": n for subject, n in (info["state"].get("subjects") or {}).items()
                }
            if stream == "ORDERS":
                # Of a subject the newest is kept, so their number tells nothing.
                states["ORDERS last"] = info["state"]["last_seq"]
            states[f"{stream} consumers"] = info["state"]["consumer_count"]
            states[f"{stream} config"] = json.dumps(info["config"], sort_keys=True)
        return states

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
        before = None
        while before != (snapshot := await self._snapshot()):
            before = snapshot
            await asyncio.sleep(QUIET_S)

    async def _snapshot(self):
        for _ in range(2):
            await self.connection.flush()
            await self.platform.service.flush()
        # Not what it hears itself: answers to what is asked here may be among that.
        return await self.platform.states(), dict(self.platform.heard), len(self.errors)


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
            for stranger in strangers:
                await stranger.connection.close()
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


def stored(stranger):
    """Acknowledgements of streams, which say nothing but a place."""
    return {body for _, body in stranger.heard if body.startswith((b'{"stream"', b'{"error"'))}
