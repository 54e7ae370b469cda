"""What each service may publish and hear on the bus, and which streams it may read."""

from __future__ import annotations

from det_contracts import subjects
from det_contracts.metrics_shards import FURTHER_SHARDS, MAX_SHARDS, OWNER, shard_subject

OPERATOR = "operator"
"""Name in the credentials of the tools with which a broker is administered."""
OWNERS = (
    subjects.INTAKE, "searcher", "scheduler", "metrics", "checkpoints", "webhooks", "gateway",
    subjects.ARCHIVE, subjects.PROVISIONER, *FURTHER_SHARDS,
)  # fmt: skip
STORED_SUBJECTS = ("witness.trial.>", "reports.>", "witness.worker.>", "orders.heard.>")
"""Subjects of both kinds of actor that streams store. With replicated streams they arrive through the intake,
because a client's headers can make the broker shut down a replicated stream (`services/intake/edge.py`)."""
GATEWAY_SUBJECTS = [subjects.witness_by_rest("*"), subjects.script_heartbeat("*"), "reports.>", "logs.>"]
"""Subjects that the gateway publishes for scripts connected to it."""
ALL_STREAMS = (*subjects.STREAM_SUBJECTS, f"KV_{subjects.LEASES}")
"""All streams. Only the intake may configure them: a stream can be told to republish its messages under any
subject, including those of other owners."""
READ_STREAMS = tuple(stream for stream in subjects.STREAM_SUBJECTS if stream != subjects.ORDERS)
"""Streams that services read. Consumers of ORDERS belong to the workers."""
SERVICE_SUBJECTS = [
    subjects.health_look(),
    "$JS.API.INFO",
    "$JS.API.STREAM.INFO.*",
    *(f"$JS.API.STREAM.CREATE.{stream}" for stream in ALL_STREAMS),
    "$JS.API.STREAM.MSG.GET.*",
    "$JS.API.DIRECT.GET.>",
    *(
        f"$JS.API.CONSUMER.{what}"
        for stream in READ_STREAMS
        for what in (f"CREATE.{stream}", f"DELETE.{stream}.*", f"MSG.NEXT.{stream}.*")
    ),
    "$JS.FC.>",
    "_INBOX.>",
    "_R_.>",
]
"""What every service may publish: it creates missing streams, reads them, and answers.

`_R_` is the prefix the broker gives to reply subjects of requests from other accounts: a random name each,
which leads back into the requester's account once, and nowhere after the requester has left. Services receive
all requests and could answer them anyway, so the names grant nothing more.

The broker's own response permission (`resp`, `allow_responses`) is no substitute. It is tracked per
connection, so an answer sent after a reconnect would be a violation. It covers any reply subject that another
service names, including a third service's facts. And the broker would keep an entry for every message read
from a stream, because those carry a subject for acks."""
BROKER_SUBJECTS = {
    "broker.facts": "$SYS.REQ.SERVER.PING.VARZ",
    "broker.connections.*": "$SYS.REQ.SERVER.*.CONNZ",
    "broker.kick.*": "$SYS.REQ.SERVER.*.KICK",
}
"""What the intake asks the brokers themselves, and what each is in their own account: how many connections a
broker has, who has them, and to end one. The wildcard is a broker's id."""
ASKED_SUBJECTS = {
    "gateway": ["command.>", "query.>"],
    "searcher": [subjects.query(owner, "*") for owner in ("metrics", "checkpoints")],
    subjects.PROVISIONER: [subjects.query("scheduler", "*"), subjects.command("scheduler", "report_workers")],
    subjects.ARCHIVE: [subjects.saved_position("*")],
    **{
        owner: [subjects.query(shard_subject(shard), "*") for shard in range(1, MAX_SHARDS + 1)]
        for owner in (OWNER, *FURTHER_SHARDS)
    },
}
"""What a service may ask of others. Only the gateway speaks for people, so it alone may send any command."""
HEARD_SUBJECTS = {
    "scheduler": [subjects.heartbeat("*")],
    "searcher": [subjects.script_heartbeat("*")],
    subjects.PROVISIONER: ["control.scheduler.worker.>"],
    subjects.INTAKE: [subjects.edge_subject(">"), subjects.lines_of_worker("*")],
    OWNER: [subjects.query(shard_subject(1), "*")],
    # Any of the metrics processes is asked for what all of them know.
    **{
        owner: [subjects.query(OWNER, "*"), subjects.question_of_trial("*", OWNER, "*")]
        for owner in FURTHER_SHARDS
    },
}
"""What a service subscribes to beside its own commands and queries, answers, and signs of health."""
OWNER_SUBJECTS = {
    subjects.INTAKE: [
        subjects.facts_of_trial("*"),
        subjects.facts_of_worker("*"),
        f"$JS.API.STREAM.PURGE.{subjects.WITNESS}",
        *(f"$JS.API.STREAM.UPDATE.{stream}" for stream in ALL_STREAMS),
        *STORED_SUBJECTS,
        *BROKER_SUBJECTS,
        "logs.>",
    ],
    "scheduler": [
        subjects.orders("*"),
        f"$JS.API.CONSUMER.DURABLE.CREATE.{subjects.ORDERS}.*",
        f"$JS.API.STREAM.MSG.DELETE.{subjects.ORDERS}",
    ],
    subjects.ARCHIVE: [f"$JS.API.STREAM.PURGE.{subjects.CONTROL}"],
    "gateway": GATEWAY_SUBJECTS,
    **{
        owner: [
            "control.metrics.trial.>",
            f"control.metrics.shard.{shard}.joined",
            f"control.metrics.database.{owner}.copied",
        ]
        for shard, owner in enumerate(FURTHER_SHARDS, 2)
    },
}


def service_inbox(owner: str) -> str:
    """Return the inbox prefix of a service: no other hears what arrives there, whatever it subscribes to.

    Services of the release before this one have other prefixes, which are shared.
    """
    return f"_INBOX.{owner}"


def inboxes_of_others(owner: str) -> list[str]:
    """Return what a service must not hear: what other services are answered, and the operator's tools."""
    return [f"{service_inbox(other)}.>" for other in (*OWNERS, OPERATOR) if other != owner]


def published_by(owner: str) -> list[str]:
    """Return what a service may publish."""
    return [
        *SERVICE_SUBJECTS,
        f"control.{owner}.>",
        subjects.health_sign(owner, "*"),
        f"$KV.{subjects.LEASES}.{owner}",
        *OWNER_SUBJECTS.get(owner, ()),
        *ASKED_SUBJECTS.get(owner, ()),
    ]


def heard_by(owner: str) -> list[str]:
    """Return what a service may subscribe to."""
    return [
        subjects.command(owner, "*"),
        subjects.query(owner, "*"),
        subjects.question_of_trial("*", owner, "*"),
        subjects.question_of_worker("*", owner, "*"),
        "health.>",
        "_INBOX.>",
        *HEARD_SUBJECTS.get(owner, ()),
    ]
