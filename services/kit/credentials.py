"""Who may say what on the bus: NATS accounts and user credentials, minted here without external tools.

There is one operator, and one account per kind of actor: within an account a reply subject may be anything,
because the broker does not check it. Scripts and workers can therefore reach only single subjects of the
platform, exported as services, and any reply subject they name lies in their own account.

Scripts and workers get users signed by a *scoped* key: its holder can mint users of that scope and nothing
else, and the broker fills the trial's or worker's id into the permissions.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import nkeys

from det_contracts import subjects
from services.kit import base64url
from services.kit.service_subjects import (
    BROKER_SUBJECTS,
    OPERATOR,
    STORED_SUBJECTS,
    heard_by,
    inboxes_of_others,
    published_by,
)

UNLIMITED = -1
NANOSECONDS = 1_000_000_000
NEXT_ORDERS = f"$JS.API.CONSUMER.MSG.NEXT.{subjects.ORDERS}"
ORDER_ACKS = f"$JS.ACK.{subjects.ORDERS}"
SCRIPT_SUBJECTS = ("witness.trial.>", "reports.>", "ask.trial.>")
WORKER_SUBJECTS = (
    "witness.worker.>",
    "ask.worker.>",
    "heartbeat.>",
    "health.sign.worker.>",
    "orders.heard.>",
    f"{NEXT_ORDERS}.>",
    f"{ORDER_ACKS}.>",
)
ANSWER_S = 30
"""How long the broker expects an answer to a script or worker. It remembers each request until then, so that
the default of two minutes would cost gigabytes for one that asks without end."""
MAX_SUBSCRIPTIONS = 16
"""Of one connection of a script or worker; each costs the broker almost a kilobyte. They need one or two."""
MAX_CONNECTIONS = 32_768
"""Connections to one broker, each about 50 KiB, unless the files that it may open are fewer."""
SCRIPTS_PART, WORKERS_PART = 0.5, 0.25
"""Parts of all connections that scripts and workers may take, so that there are always some for services."""
MULTI_REPLY_SUBJECTS = (f"{NEXT_ORDERS}.>", BROKER_SUBJECTS["broker.facts"])
"""Services that send many replies to one request."""


@dataclass(frozen=True)
class Authority:
    """The keys of one cluster. All are secret except the tokens given to the broker."""

    operator_seed: str
    system_seed: str
    account_seed: str
    """Seed of the platform's account, which holds all streams."""
    signing_seed: str
    trial_signing_seed: str
    """Signs script users. The only script key that workers receive."""
    scripts_seed: str
    workers_seed: str
    worker_signing_seed: str
    """Signs worker users. Its holder can act as any worker."""

    @classmethod
    def create(cls) -> Authority:
        """Generate new keys."""
        kinds = (nkeys.PREFIX_BYTE_OPERATOR,) + (nkeys.PREFIX_BYTE_ACCOUNT,) * 7
        return cls(*(_new_seed(kind) for kind in kinds))

    @classmethod
    def from_json(cls, text: str) -> Authority:
        """Load keys written by `to_json`. Keys that an earlier version did not have are generated."""
        keys = json.loads(text)
        if not isinstance(keys, dict):
            raise TypeError(f"expected an object of keys, not {type(keys).__name__}")
        for later in ("scripts_seed", "workers_seed", "worker_signing_seed"):
            keys.setdefault(later, _new_seed(nkeys.PREFIX_BYTE_ACCOUNT))
        return cls(**keys)

    def to_json(self) -> str:
        """Serialize the keys for a file that only its owner may read."""
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

    def server_settings(self, *, edge: bool = False, connections: int = MAX_CONNECTIONS) -> dict[str, Any]:
        """Return the broker's settings: public tokens only, no secrets.

        With `edge`, everything scripts and workers publish to streams goes to the intake first. `connections`
        is how many the broker takes.
        """
        system = _public(self.system_seed)
        exported = [
            _export(_platform_subject(subject, edge)) for subject in (*SCRIPT_SUBJECTS, *WORKER_SUBJECTS)
        ]
        imported = [
            _import(local.replace("*", "$1"), subject, system) for local, subject in BROKER_SUBJECTS.items()
        ]
        platform = _account(signing_keys=[_public(self.signing_seed)], exports=exported, imports=imported)
        offered = [_export(subject) for subject in BROKER_SUBJECTS.values()]
        accounts = {
            self.account: ("platform", platform),
            self.scripts: (
                "scripts",
                self._outside_account(
                    SCRIPT_SUBJECTS,
                    edge,
                    int(connections * SCRIPTS_PART),
                    _scope("trial", self.trial_signing_seed, _trial_subjects),
                ),
            ),
            self.workers: (
                "workers",
                self._outside_account(
                    WORKER_SUBJECTS,
                    edge,
                    int(connections * WORKERS_PART),
                    _scope("worker", self.worker_signing_seed, _worker_subjects),
                ),
            ),
            system: ("system", _account(_NO_STREAMS, exports=offered)),
        }
        return {
            "operator": _token(
                "steadfast",
                _public(self.operator_seed),
                self.operator_seed,
                {"type": "operator", "version": 2},
            ),
            "max_connections": connections,
            "system_account": system,
            # All accounts are in this file, so no broker depends on another service to let users in.
            "resolver": "MEMORY",
            "resolver_preload": {
                public: _token(name, public, self.operator_seed, claims)
                for public, (name, claims) in accounts.items()
            },
        }

    def _outside_account(
        self, imported: Iterable[str], edge: bool, connections: int, scope: dict[str, Any]
    ) -> dict[str, Any]:
        """Build an account without streams whose users reach only these platform services."""
        imports = [_import(subject, _platform_subject(subject, edge), self.account) for subject in imported]
        return _account(_NO_STREAMS | {"conn": connections}, signing_keys=[scope], imports=imports)

    def service(self, owner: str) -> str:
        """Return a credentials file for a service.

        A service may publish its own owner's facts, signs and lease, ask what it needs of others, and hear
        what it is asked: nobody answers, or listens, in another's place.
        """
        may = _permissions(published_by(owner), heard_by(owner), deaf_to=inboxes_of_others(owner))
        return _credentials(owner, self.signing_seed, self.account, may)

    def operator(self) -> str:
        """Return a credentials file for the broker's administrator: publish and subscribe to everything."""
        return _credentials(OPERATOR, self.signing_seed, self.account, _permissions([">"], [">"]))

    def worker(self, worker_id: str) -> str:
        """Return a credentials file for one worker."""
        return mint_worker(self.worker_signing_seed, self.workers, worker_id)


def mint_trial(trial_signing_seed: str, account: str, trial_id: int, *, valid_s: float | None = None) -> str:
    """Return a credentials file for one trial's script, valid forever or for `valid_s` seconds.

    `account` is the public key of the scripts' account.
    """
    # Without permissions: those of a scoped key come from its scope, and the broker refuses a user that
    # brings others.
    return _credentials(str(trial_id), trial_signing_seed, account, {}, valid_s)


def mint_worker(worker_signing_seed: str, account: str, worker_id: str) -> str:
    """Return a credentials file for one worker. `account` is the public key of the workers' account."""
    return _credentials(worker_id, worker_signing_seed, account, {})


def trial_inbox(trial_id: int) -> str:
    """Return the inbox prefix that a trial's user must use. It may subscribe to nothing else."""
    return f"_INBOX.{trial_id}"


def worker_inbox(worker_id: str) -> str:
    """Return the inbox prefix that a worker must use."""
    return f"_INBOX.{worker_id}"


_UNBOUNDED = ["subs", "data", "payload", "imports", "exports", "conn", "leaf", "max_ack_pending"]
_UNBOUNDED += ["mem_storage", "disk_storage", "streams", "consumer"]
_ACCOUNT_LIMITS = dict.fromkeys(_UNBOUNDED, UNLIMITED) | {"wildcards": True}
_NO_STREAMS = dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), 0)


def _account(limits: dict[str, int] | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "account", "version": 2, "limits": _ACCOUNT_LIMITS | (limits or {})} | more


def _platform_subject(subject: str, edge: bool) -> str:
    return subjects.edge_subject(subject) if edge and subject in STORED_SUBJECTS else subject


def _import(local: str, subject: str, account: str) -> dict[str, Any]:
    renamed = {"local_subject": local} if local != subject else {}
    return {"name": local, "subject": subject, "account": account, "type": "service"} | renamed


def _export(subject: str) -> dict[str, Any]:
    many: dict[str, Any] = {"response_threshold": ANSWER_S * NANOSECONDS}
    if subject in MULTI_REPLY_SUBJECTS:
        many = {"response_type": "Stream"}
    return {"name": subject, "subject": subject, "type": "service"} | many


def _scope(role: str, seed: str, subjects_of: Callable[[str], list[str]]) -> dict[str, Any]:
    name = "{{name()}}"
    template = _permissions(subjects_of(name), [f"_INBOX.{name}.>"]) | {"subs": MAX_SUBSCRIPTIONS}
    return {"kind": "user_scope", "key": _public(seed), "role": role, "template": template}


def _trial_subjects(trial: str) -> list[str]:
    return [subjects.witness_of_trial(trial), subjects.reports_of(trial), f"ask.trial.{trial}.>"]


def _worker_subjects(worker: str) -> list[str]:
    return [
        subjects.witness_of_worker(worker),
        subjects.heartbeat(worker),
        subjects.health_sign("worker", worker),
        subjects.newest_orders_check(worker),
        f"ask.worker.{worker}.>",
        f"{NEXT_ORDERS}.{worker}",
        f"{ORDER_ACKS}.{worker}.>",
    ]


def _permissions(publish: list[str], subscribe: list[str], deaf_to: Sequence[str] = ()) -> dict[str, Any]:
    """Build permissions. What arrives on subjects in `deaf_to` is kept from wider subscriptions, too."""
    return {
        "pub": {"allow": publish},
        "sub": {"allow": subscribe, "deny": list(deaf_to)},
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
    """Build a NATS JWT (algorithm ed25519-nkey)."""
    signer = nkeys.from_seed(bytearray(signer_seed.encode()))
    claims: dict[str, Any] = {
        "iat": int(time.time()),
        "iss": signer.public_key.decode(),
        "name": name,
        "sub": subject,
        "nats": nats,
    }
    if expires is not None:
        claims["exp"] = int(expires)
    # The id that NATS' own tools give a token: the digest of its other claims.
    digest = hashlib.new("sha512_256", json.dumps(claims).encode()).digest()
    claims["jti"] = base64.b32encode(digest).rstrip(b"=").decode()
    header = base64url.encode(b'{"typ":"JWT","alg":"ed25519-nkey"}')
    signed = f"{header}.{base64url.encode(json.dumps(claims).encode())}"
    signature: bytes = signer.sign(signed.encode())
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
