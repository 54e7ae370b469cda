"""Where a local cluster keeps what it must remember."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from services.kit import passwords
from services.kit.files import set_aside, write_whole
from services.local.keys import keep_secret

if TYPE_CHECKING:
    from services.local.certificates import Certificates

FIRST_SECRET = "initial-password"  # noqa: S105 - the name of a file


@dataclass(frozen=True)
class Plan:
    """What `up` was asked for; kept so that `run` and later starts agree."""

    name: str
    port: int = 8080
    host: str = "127.0.0.1"
    broker_host: str = "127.0.0.1"
    """Address at which the broker listens, and all programs reach it."""
    agents: int = 1
    slots: int = 1
    """CPU slots per worker, where no accelerator is found or none is wanted."""
    gpu: bool = True
    storage: str = ""
    """Directory for checkpoints; empty: in the cluster's home."""
    python: str = sys.executable
    """Interpreter for trials."""
    settings: dict[str, str] = field(default_factory=dict)
    """Further settings of all programs, by variable."""
    pools: list[str] = field(default_factory=list)
    """The resource pool of each worker in turn; the last one is for all further workers."""
    pools_file: str = ""
    """YAML file that configures the resource pools."""
    pools_content: dict[str, Any] = field(default_factory=dict)
    """What such a file would say, where the configuration of a master says it; empty: nothing."""
    tls: bool = False
    """Whether broker and gateway speak TLS, with certificates of the cluster's own authority."""
    ends_with: int = 0
    """Id of a process with which the cluster ends, however that ends; 0: it runs until it is told."""

    @property
    def address(self) -> str:
        """Where this machine reaches the gateway."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104 - compared
        return f"{'https' if self.tls else 'http'}://{f'[{host}]' if ':' in host else host}:{self.port}"

    def broker_url(self, port: int) -> str:
        """Where programs reach the broker, which listens at that port."""
        host = f"[{self.broker_host}]" if ":" in self.broker_host else self.broker_host
        return f"{'tls' if self.tls else 'nats'}://{host}:{port}"

    def pool_of(self, number: int) -> str:
        """The pool of a worker, counted from 0."""
        return self.pools[min(number, len(self.pools) - 1)] if self.pools else "default"


@dataclass(frozen=True)
class Wish:
    """What was asked of one program of a running cluster."""

    stopped: bool = False
    """Not to be started again."""
    settings: dict[str, str] = field(default_factory=dict)
    """Further settings from its next start on, by variable."""


class Home:
    """The folder of one cluster: `<data directory>/steadfast/<name>`."""

    def __init__(self, name: str, data: Path | None = None) -> None:
        self.name = name
        self.path = (data or data_directory()) / "steadfast" / name

    def folder(self, *parts: str) -> Path:
        """A folder inside, made when it is missing; readable by its owner only."""
        path = self.path.joinpath(*parts)
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        return path

    def read(self, name: str) -> dict[str, Any] | None:
        """A JSON file inside; None when it is not there. One that is damaged is told and set aside."""
        path = self.path / name
        try:
            content = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as error:
            self._set_aside(path, str(error))
            return None
        if not isinstance(content, dict):
            self._set_aside(path, "it holds no object")
            return None
        return content

    def _set_aside(self, path: Path, why: str) -> None:
        aside = set_aside(path)
        print(f"{path} is damaged ({why}): set aside as {aside.name}, and made again", file=sys.stderr)

    def write(self, name: str, content: dict[str, Any] | list[Any]) -> None:
        """Write a JSON file whole or not at all; raises OSError."""
        self.folder()
        write_whole(self.path / name, json.dumps(content, indent=2).encode())

    def plan(self) -> Plan | None:
        """What the cluster was last started as."""
        plan = self.read("plan.json")
        names = {field.name for field in fields(Plan)}
        return Plan(**{name: value for name, value in plan.items() if name in names}) if plan else None

    def keep(self, plan: Plan) -> None:
        """Remember how to start the cluster."""
        self.write("plan.json", asdict(plan))

    def wish(self, program: str) -> Wish:
        """What was last asked of a program."""
        content = self.read(f"wish-{program}.json")
        return Wish(**content) if content else Wish()

    def ask(self, program: str, wish: Wish) -> None:
        """Leave a wish for the supervisor, which heeds it when the program ends."""
        self.write(f"wish-{program}.json", asdict(wish))

    def keep_first_password(self, password: str) -> None:
        """Keep the hash of the password that `admin` and `determined` get."""
        hashed = passwords.kept(passwords.hashed(password)).hashed
        write_whole(self.folder("secrets") / FIRST_SECRET, hashed.encode())

    def first_password(self) -> Path | None:
        """The file with that hash, if there is one."""
        path = self.path / "secrets" / FIRST_SECRET
        return path if path.exists() else None

    def authority(self, plan: Plan) -> Path | None:
        """Who vouches for the cluster's certificate, once there is one."""
        path = self.path / "tls" / "ca.pem"
        return path if plan.tls and path.exists() else None

    def certificates(self, plan: Plan) -> Certificates | None:
        """What the cluster shows and is known by; None without TLS."""
        if not plan.tls:
            return None
        from services.local import certificates

        return certificates.keep(self.folder("tls"), self.folder("secrets"), plan.host)

    def secret(self, name: str) -> Path:
        """A file with a random secret, made at first use."""
        return keep_secret(self.folder("secrets") / name)


def data_directory() -> Path:
    """The per-user data directory, `STEADFAST_HOME` before `XDG_DATA_HOME` before `~/.local/share`."""
    chosen = os.environ.get("STEADFAST_HOME") or os.environ.get("XDG_DATA_HOME")
    return Path(chosen) if chosen else Path.home() / ".local" / "share"
