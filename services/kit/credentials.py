"""Who may say what on the bus: NATS accounts and user credentials, minted here without further tools.

One operator, and an account for each kind of actor: within one account a reply subject may be anything, and
the broker does not look at it. So what scripts and workers reach of the platform are single subjects,
exported as services; whatever they name as reply subject lies in their own account.

Scripts and workers get users signed by a *scoped* key: whoever holds it can mint users of that scope and
nothing else, and the broker fills the trial's or the worker's id into its permissions.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import nkeys

from det_contracts import subjects
from services.kit import base64url

UNLIMITED = -1
OWNERS = (
    subjects.INTAKE, "searcher", "scheduler", "metrics", "checkpoints", "webhooks", "gateway",
    subjects.ARCHIVE, subjects.PROVISIONER,
)  # fmt: skip
NEXT_ORDERS = f"$JS.API.CONSUMER.MSG.NEXT.{subjects.ORDERS}"
ORDERS_ACTED_ON = f"$JS.ACK.{subjects.ORDERS}"
FOR_SCRIPTS = ("witness.trial.>", "reports.>", "ask.trial.>")
FOR_WORKERS = (
    "witness.worker.>",
    "ask.worker.>",
    "heartbeat.>",
    "health.sign.worker.>",
    "orders.heard.>",
    f"{NEXT_ORDERS}.>",
    f"{ORDERS_ACTED_ON}.>",
)
INTO_STREAMS = ("witness.trial.>", "reports.>", "witness.worker.>", "orders.heard.>")
"""Those of both that streams take: from the intake's hands where several brokers keep copies of them, as what
a sender's headers demand of a stream can end it there (`services/intake/edge.py`)."""
STREAMED = (f"{NEXT_ORDERS}.>",)
"""Services that answer one request many times."""
BY_REST = [subjects.witness_by_rest("*"), subjects.alive("*"), "reports.>", "logs.>"]
"""What the gateway says for scripts that speak to it."""
HELD = (*subjects.STREAM_SUBJECTS, f"KV_{subjects.LEASES}")
"""All streams that there are. How they are is the intake's to say: a stream can be told to publish what it
holds under any subject, other owners' among them."""
READ = tuple(stream for stream in subjects.STREAM_SUBJECTS if stream != subjects.ORDERS)
"""What services read; the consumers of ORDERS are the workers'."""
PLAIN = [
    "command.>",
    "query.>",
    subjects.health_look(),
    f"$KV.{subjects.LEASES}.>",
    "$JS.API.INFO",
    "$JS.API.STREAM.INFO.*",
    *(f"$JS.API.STREAM.CREATE.{stream}" for stream in HELD),
    "$JS.API.STREAM.MSG.GET.*",
    "$JS.API.DIRECT.GET.>",
    *(
        f"$JS.API.CONSUMER.{what}"
        for stream in READ
        for what in (f"CREATE.{stream}", f"DELETE.{stream}.*", f"MSG.NEXT.{stream}.*")
    ),
    "$JS.FC.>",
    "_INBOX.>",
    "_R_.>",
]
"""What every service may say: it asks others, makes streams that are not there, reads them, and answers.

`_R_` is where the broker puts the reply subjects of questions that come from the other accounts: a random
name each, which leads back into the asker's own account, once, and nowhere when the asker has left. Services
hear all questions and could answer them anyhow; the names by themselves give them nothing more.
The broker's own permission to respond (`resp`, `allow_responses`) is no substitute. It is remembered by
connection, so an answer given after a reconnect would be a violation; it covers any reply subject that
another service names, a third one's facts too; and the broker would keep an entry for each message read
of a stream, as those carry a subject for acknowledgements.
"""
OF_OWNER = {
    subjects.INTAKE: [
        subjects.witnessed("*"),
        subjects.stated_by_worker("*"),
        f"$JS.API.STREAM.PURGE.{subjects.WITNESS}",
        *(f"$JS.API.STREAM.UPDATE.{stream}" for stream in HELD),
        *INTO_STREAMS,
        "logs.>",
    ],
    "scheduler": [subjects.orders("*"), f"$JS.API.CONSUMER.DURABLE.CREATE.{subjects.ORDERS}.*"],
    subjects.ARCHIVE: [f"$JS.API.STREAM.PURGE.{subjects.CONTROL}"],
    "gateway": BY_REST,
}


@dataclass(frozen=True)
class Authority:
    """The keys of one cluster: secret, but for the tokens that the broker is given."""

    operator_seed: str
    system_seed: str
    account_seed: str
    """Of the platform's account, which holds all streams."""
    signing_seed: str
    trial_signing_seed: str
    """The one key of scripts that goes to workers."""
    scripts_seed: str
    workers_seed: str
    worker_signing_seed: str
    """Who holds it can be any worker."""

    @classmethod
    def create(cls) -> Authority:
        """New keys."""
        kinds = (nkeys.PREFIX_BYTE_OPERATOR,) + (nkeys.PREFIX_BYTE_ACCOUNT,) * 7
        return cls(*(_new_seed(kind) for kind in kinds))

    @classmethod
    def from_json(cls, text: str) -> Authority:
        """Keys that `to_json` wrote; those that an earlier version did not have are made."""
        kept = json.loads(text)
        if not isinstance(kept, dict):
            raise TypeError(f"these are no keys: {type(kept).__name__}")
        for later in ("scripts_seed", "workers_seed", "worker_signing_seed"):
            kept.setdefault(later, _new_seed(nkeys.PREFIX_BYTE_ACCOUNT))
        return cls(**kept)

    def to_json(self) -> str:
        """For a file that only its owner may read."""
        return json.dumps(asdict(self))

    @property
    def account(self) -> str:
        """The public key of the platform's account."""
        return _public(self.account_seed)

    @property
    def scripts(self) -> str:
        """The public key of the scripts' account."""
        return _public(self.scripts_seed)

    @property
    def workers(self) -> str:
        """The public key of the workers' account."""
        return _public(self.workers_seed)

    def server_settings(self, *, edge: bool = False) -> dict[str, Any]:
        """What the broker must know: public tokens, no secret.

        With an `edge` the intake hears first what scripts and workers say for streams.
        """
        system = _public(self.system_seed)
        exported = [_export(_heard_on(subject, edge)) for subject in (*FOR_SCRIPTS, *FOR_WORKERS)]
        platform = _account(signing_keys=[_public(self.signing_seed)], exports=exported)
        accounts = {
            self.account: ("platform", platform),
            self.scripts: (
                "scripts",
                self._outside(FOR_SCRIPTS, edge, _scope("trial", self.trial_signing_seed, _trial_says)),
            ),
            self.workers: (
                "workers",
                self._outside(FOR_WORKERS, edge, _scope("worker", self.worker_signing_seed, _worker_says)),
            ),
            system: ("system", _account(_NO_STREAMS)),
        }
        return {
            "operator": _token(
                "steadfast",
                _public(self.operator_seed),
                self.operator_seed,
                {"type": "operator", "version": 2},
            ),
            "system_account": system,
            "resolver": "MEMORY",
            "resolver_preload": {
                public: _token(name, public, self.operator_seed, claims)
                for public, (name, claims) in accounts.items()
            },
        }

    def _outside(self, imported: Iterable[str], edge: bool, scope: dict[str, Any]) -> dict[str, Any]:
        """An account without streams, of which all reach these services of the platform, each its own."""
        imports = [
            {"name": subject, "subject": heard, "account": self.account, "type": "service"}
            | ({"local_subject": subject} if heard != subject else {})
            for subject, heard in ((subject, _heard_on(subject, edge)) for subject in imported)
        ]
        return _account(_NO_STREAMS, signing_keys=[scope], imports=imports)

    def service(self, owner: str) -> str:
        """A credentials file for a service: it decides its own owner's facts, and hears everything."""
        own = [f"control.{owner}.>", subjects.health_sign(owner, "*"), *OF_OWNER.get(owner, ())]
        return _credentials(owner, self.signing_seed, self.account, _may([*PLAIN, *own], [">"]))

    def operator(self) -> str:
        """A credentials file for whoever administers the broker: it may say and hear everything."""
        return _credentials("operator", self.signing_seed, self.account, _may([">"], [">"]))

    def worker(self, worker_id: str) -> str:
        """A credentials file for one worker."""
        return mint_worker(self.worker_signing_seed, self.workers, worker_id)


def mint_trial(trial_signing_seed: str, account: str, trial_id: int, *, valid_s: float | None = None) -> str:
    """A credentials file for the script of one trial; for ever, or for `valid_s` seconds.

    `account` is the public key of the scripts' account.
    """
    return _credentials(str(trial_id), trial_signing_seed, account, {}, valid_s)


def mint_worker(worker_signing_seed: str, account: str, worker_id: str) -> str:
    """A credentials file for one worker; `account` is the public key of the workers' account."""
    return _credentials(worker_id, worker_signing_seed, account, {})


def trial_inbox(trial_id: int) -> str:
    """The inbox prefix that a trial's user must use: it may hear nothing else."""
    return f"_INBOX.{trial_id}"


def worker_inbox(worker_id: str) -> str:
    """The inbox prefix that a worker must use."""
    return f"_INBOX.{worker_id}"


_UNBOUNDED = ["subs", "data", "payload", "imports", "exports", "conn", "leaf", "max_ack_pending"]
_UNBOUNDED += ["mem_storage", "disk_storage", "streams", "consumer"]
_ACCOUNT_LIMITS = dict.fromkeys(_UNBOUNDED, UNLIMITED) | {"wildcards": True}
_NO_STREAMS = dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), 0)


def _account(limits: dict[str, int] | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "account", "version": 2, "limits": _ACCOUNT_LIMITS | (limits or {})} | more


def _heard_on(subject: str, edge: bool) -> str:
    return subjects.at_edge(subject) if edge and subject in INTO_STREAMS else subject


def _export(subject: str) -> dict[str, Any]:
    many = {"response_type": "Stream"} if subject in STREAMED else {}
    return {"name": subject, "subject": subject, "type": "service"} | many


def _scope(role: str, seed: str, says: Callable[[str], list[str]]) -> dict[str, Any]:
    name = "{{name()}}"
    template = _may(says(name), [f"_INBOX.{name}.>"])
    return {"kind": "user_scope", "key": _public(seed), "role": role, "template": template}


def _trial_says(trial: str) -> list[str]:
    return [subjects.witness_of_trial(trial), subjects.reports_of(trial), f"ask.trial.{trial}.>"]


def _worker_says(worker: str) -> list[str]:
    return [
        subjects.witness_of_worker(worker),
        subjects.heartbeat(worker),
        subjects.health_sign("worker", worker),
        subjects.orders_heard(worker),
        f"ask.worker.{worker}.>",
        f"{NEXT_ORDERS}.{worker}",
        f"{ORDERS_ACTED_ON}.{worker}.>",
    ]


def _may(say: list[str], hear: list[str]) -> dict[str, Any]:
    return {
        "pub": {"allow": say},
        "sub": {"allow": hear},
        "subs": UNLIMITED,
        "data": UNLIMITED,
        "payload": UNLIMITED,
    }


def _new_seed(kind: int) -> str:
    seed: bytes = nkeys.encode_seed(os.urandom(32), kind)
    return seed.decode()


def _public(seed: str) -> str:
    public: bytes = nkeys.from_seed(bytearray(seed.encode())).public_key
    return public.decode()


def _token(
    name: str, subject: str, signer_seed: str, nats: dict[str, Any], expires: float | None = None
) -> str:
    """A NATS JWT (algorithm ed25519-nkey)."""
    claims: dict[str, Any] = {
        "iat": int(time.time()),
        "iss": _public(signer_seed),
        "name": name,
        "sub": subject,
        "nats": nats,
    }
    if expires is not None:
        claims["exp"] = int(expires)
    digest = hashlib.new("sha512_256", json.dumps(claims).encode()).digest()
    claims["jti"] = base64.b32encode(digest).rstrip(b"=").decode()
    header = base64url.encode(b'{"typ":"JWT","alg":"ed25519-nkey"}')
    signed = f"{header}.{base64url.encode(json.dumps(claims).encode())}"
    signature: bytes = nkeys.from_seed(bytearray(signer_seed.encode())).sign(signed.encode())
    return f"{signed}.{base64url.encode(signature)}"


def _credentials(
    name: str, signer_seed: str, account: str, may: dict[str, Any], valid_s: float | None = None
) -> str:
    seed = _new_seed(nkeys.PREFIX_BYTE_USER)
    nats = {"type": "user", "version": 2, "issuer_account": account} | may
    expires = None if valid_s is None else time.time() + valid_s
    token = _token(name, _public(seed), signer_seed, nats, expires)
    return (
        f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
