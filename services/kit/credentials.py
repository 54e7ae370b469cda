"""Who may say what on the bus: NATS accounts and user credentials, minted here without further tools.

One operator, one account. Services and workers get users with a fixed role. Scripts get users signed by a
*scoped* key: whoever holds it, a worker, can mint trial users and nothing else, and the broker fills the
trial's id into the permissions of that scope.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from dataclasses import asdict, dataclass
from typing import Any

import nkeys

from det_contracts import subjects
from services.kit import base64url

UNLIMITED = -1
READING = [
    "$JS.API.STREAM.INFO.CONTROL",
    "$JS.API.STREAM.MSG.GET.CONTROL",
    "$JS.API.CONSUMER.CREATE.CONTROL",
    "$JS.API.CONSUMER.CREATE.CONTROL.>",
    "$JS.API.CONSUMER.DELETE.CONTROL.>",
    "$JS.API.CONSUMER.MSG.NEXT.CONTROL.>",
    "$JS.FC.>",
]
WORKER_MAY_SAY = [
    subjects.witness_of_worker("*"),
    "logs.>",
    subjects.heartbeat("*"),
    subjects.health_sign("worker", "*"),
    subjects.orders_heard("*"),
    f"$JS.API.CONSUMER.MSG.NEXT.{subjects.ORDERS}.*",
    f"$JS.ACK.{subjects.ORDERS}.>",
    *READING,
]
WORKER_MAY_HEAR = ["_INBOX.>", subjects.health_look()]


@dataclass(frozen=True)
class Authority:
    """The keys of one cluster: secret, but for the tokens that the broker is given."""

    operator_seed: str
    system_seed: str
    account_seed: str
    signing_seed: str
    trial_signing_seed: str
    """The one key that goes to workers."""

    @classmethod
    def create(cls) -> Authority:
        """New keys."""
        kinds = (nkeys.PREFIX_BYTE_OPERATOR,) + (nkeys.PREFIX_BYTE_ACCOUNT,) * 4
        return cls(*(_new_seed(kind) for kind in kinds))

    @classmethod
    def from_json(cls, text: str) -> Authority:
        """Keys that `to_json` wrote."""
        return cls(**json.loads(text))

    def to_json(self) -> str:
        """For a file that only its owner may read."""
        return json.dumps(asdict(self))

    @property
    def account(self) -> str:
        """The account's public key."""
        return _public(self.account_seed)

    def server_settings(self) -> dict[str, Any]:
        """What the broker must know: public tokens, no secret."""
        operator = {"type": "operator", "version": 2}
        scope = {
            "kind": "user_scope",
            "key": _public(self.trial_signing_seed),
            "role": "trial",
            "template": _may(_trial_says("{{name()}}"), ["_INBOX.{{name()}}.>"]),
        }
        account = {
            "type": "account",
            "version": 2,
            "limits": _ACCOUNT_LIMITS,
            "signing_keys": [_public(self.signing_seed), scope],
        }
        system = _public(self.system_seed)
        without_streams = {"type": "account", "version": 2, "limits": _ACCOUNT_LIMITS | _NO_STREAMS}
        return {
            "operator": _token("steadfast", _public(self.operator_seed), self.operator_seed, operator),
            "system_account": system,
            "resolver": "MEMORY",
            "resolver_preload": {
                self.account: _token("steadfast", self.account, self.operator_seed, account),
                system: _token("system", system, self.operator_seed, without_streams),
            },
        }

    def service(self) -> str:
        """A credentials file for a service: it may say and hear everything."""
        return self._user("service", _may([">"], [">"]))

    def worker(self) -> str:
        """A credentials file for a worker."""
        return self._user("worker", _may(WORKER_MAY_SAY, WORKER_MAY_HEAR))

    def _user(self, name: str, may: dict[str, Any]) -> str:
        return _credentials(name, self.signing_seed, self.account, may)


def mint_trial(trial_signing_seed: str, account: str, trial_id: int, *, valid_s: float | None = None) -> str:
    """A credentials file for the script of one trial; for ever, or for `valid_s` seconds."""
    return _credentials(str(trial_id), trial_signing_seed, account, {}, valid_s)


def trial_inbox(trial_id: int) -> str:
    """The inbox prefix that a trial's user must use: it may hear nothing else."""
    return f"_INBOX.{trial_id}"


_UNBOUNDED = ["subs", "data", "payload", "imports", "exports", "conn", "leaf", "max_ack_pending"]
_UNBOUNDED += ["mem_storage", "disk_storage", "streams", "consumer"]
_ACCOUNT_LIMITS = dict.fromkeys(_UNBOUNDED, UNLIMITED) | {"wildcards": True}
_NO_STREAMS = dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), 0)


def _trial_says(trial: str) -> list[str]:
    asked = f"ask.trial.{trial}.>"
    # The last ones: a script tells a stream that has no leader just now from one that does not exist.
    return [
        subjects.witness_of_trial(trial),
        subjects.reports_of(trial),
        asked,
        *READING,
        "$JS.API.STREAM.INFO.REPORTS",
        "$JS.API.STREAM.INFO.WITNESS",
    ]


def _may(say: list[str], hear: list[str]) -> dict[str, Any]:
    return {
        "pub": {"allow": say},
        "sub": {"allow": hear},
        "resp": {"max": UNLIMITED, "ttl": 0},
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
