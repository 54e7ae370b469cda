"""The folder in which a local cluster keeps its persistent state."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from services.kit import passwords
from services.kit.files import set_aside, write_atomic
from services.kit.os_user import os_user
from services.local.keys import ensure_secret

if TYPE_CHECKING:
    from services.local.certificates import Certificates

RUN_AS = "STEADFAST_WORKER_RUN_AS"
"""Setting of workers: the account of tasks whose owner has none."""
SHARDS = "STEADFAST_METRICS_SHARDS"
"""Variable with the number of metrics processes."""
DEFAULT_NAME = "determined"
"""Name of a cluster that was given none."""
INITIAL_PASSWORD_FILE = "initial-password"  # noqa: S105 - the name of a file


@dataclass(frozen=True)
class Plan:
    """The options of a start, stored so that `run` and the next start use the same.

    An interpreter is chosen at each start.
    """

    name: str
    port: int = 8080
    host: str = "127.0.0.1"
    broker_host: str = "127.0.0.1"
    """Address at which the broker listens and all programs reach it."""
    agents: int = 1
    slots: int = 1
    """CPU slots per worker, if no accelerator is found or wanted."""
    gpu: bool = True
    storage: str = ""
    """Directory for checkpoints; empty: in the cluster's home."""
    python: str = sys.executable
    """Interpreter for trials."""
    settings: dict[str, str] = field(default_factory=dict)
    """Additional settings of all programs, by environment variable."""
    pools: list[str] = field(default_factory=list)
    """The resource pool of each worker in turn; the last one applies to all further workers."""
    pools_file: str = ""
    """YAML file that configures the resource pools."""
    pools_content: dict[str, Any] = field(default_factory=dict)
    """The same configuration taken from a master's configuration file; empty if there is none."""
    tls: bool = False
    """Whether broker and gateway use TLS, with certificates of the cluster's own authority."""
    ends_with: int = 0
    """Id of a process with which the cluster ends; 0: it runs until stopped."""

    @property
    def listens_everywhere(self) -> bool:
        """Whether the gateway listens on all addresses of this machine."""
        return self.host in ("0.0.0.0", "::")  # noqa: S104 - compared

    @property
    def address(self) -> str:
        """The gateway's address on this machine."""
        host = "127.0.0.1" if self.listens_everywhere else self.host
        return f"{'https' if self.tls else 'http'}://{f'[{host}]' if ':' in host else host}:{self.port}"

    def broker_url(self, port: int) -> str:
        """Return the URL of the broker, which listens on that port."""
        host = f"[{self.broker_host}]" if ":" in self.broker_host else self.broker_host
        return f"{'tls' if self.tls else 'nats'}://{host}:{port}"

    def pool_of(self, number: int) -> str:
        """Return the pool of a worker, counted from 0."""
        return self.pools[min(number, len(self.pools) - 1)] if self.pools else "default"


@dataclass(frozen=True)
class ProgramRequest:
    """What the supervisor should do with one program of a running cluster."""

    stopped: bool = False
    """Whether it must not be restarted."""
    settings: dict[str, str] = field(default_factory=dict)
    """Additional settings from its next start on, by environment variable."""


class Home:
    """The folder of one cluster: `<data directory>/steadfast/<name>`."""

    def __init__(self, name: str, data: Path | None = None) -> None:
        self.name = name
        self.path = (data or data_directory()) / "steadfast" / name

    def folder(self, *parts: str) -> Path:
        """Return a subfolder, creating it if necessary, readable by its owner only."""
        path = self.path.joinpath(*parts)
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        return path

    def read(self, name: str) -> dict[str, Any] | None:
        """Read a JSON file; None if it is missing. A damaged file is reported and set aside."""
        path = self.path / name
        try:
            content = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as error:
            self._set_aside(path, str(error))
            return None
        if not isinstance(content, dict):
            self._set_aside(path, "it is not a JSON object")
            return None
        return content

    def _set_aside(self, path: Path, why: str) -> None:
        aside = set_aside(path)
        print(f"{path} is damaged ({why}): set aside as {aside.name} and recreated", file=sys.stderr)

    def write(self, name: str, content: dict[str, Any] | list[Any]) -> None:
        """Write a JSON file atomically. Raises OSError."""
        self.folder()
        write_atomic(self.path / name, json.dumps(content, indent=2).encode())

    def plan(self) -> Plan | None:
        """Return the options of the last start."""
        plan = self.read("plan.json")
        # A plan of a newer version may have more fields.
        names = {field.name for field in fields(Plan)}
        return Plan(**{name: value for name, value in plan.items() if name in names}) if plan else None

    def write_plan(self, plan: Plan) -> None:
        """Store how to start the cluster."""
        self.write("plan.json", asdict(plan))

    def read_request(self, program: str) -> ProgramRequest:
        """Return the last request for a program."""
        content = self.read(f"request-{program}.json")
        return ProgramRequest(**content) if content else ProgramRequest()

    def write_request(self, program: str, request: ProgramRequest) -> None:
        """Store a request for the supervisor, which follows it when the program exits."""
        self.write(f"request-{program}.json", asdict(request))

    def store_initial_password(self, password: str) -> None:
        """Store the hash of the initial password of `admin` and `determined`."""
        hashed = passwords.to_stored(passwords.client_hash(password)).hashed
        write_atomic(self.folder("secrets") / INITIAL_PASSWORD_FILE, hashed.encode())

    def initial_password_file(self) -> Path | None:
        """Return the file with that hash, if it exists."""
        path = self.path / "secrets" / INITIAL_PASSWORD_FILE
        return path if path.exists() else None

    def authority(self, plan: Plan) -> Path | None:
        """Return the file of the authority that signed the cluster's certificate, if it exists."""
        path = self.path / "tls" / "ca.pem"
        return path if plan.tls and path.exists() else None

    def certificates(self, plan: Plan) -> Certificates | None:
        """Return the cluster's certificates; None without TLS."""
        if not plan.tls:
            return None
        from services.local import certificates

        return certificates.ensure_certificates(self.folder("tls"), self.folder("secrets"), plan.host)

    def secret(self, name: str) -> Path:
        """Return a file with a random secret, created on first use."""
        return ensure_secret(self.folder("secrets") / name)


def cluster_names() -> list[str]:
    """Return the names of the clusters of this user on this machine, running or not."""
    return sorted(plan.parent.name for plan in data_directory().glob("steadfast/*/plan.json"))


def option_of(name: str) -> str:
    """Return the option of `det deploy local` that names this cluster; empty for the default name."""
    return "" if name == DEFAULT_NAME else f" --cluster-name {name}"


def chosen_options(plan: Plan) -> dict[str, str]:
    """Return the options of `det deploy local cluster-up` that made a plan, by field, without the usual ones.

    Of settings and pools only that there are some: their values may be secret.
    """
    usual = Plan(name=plan.name)
    options = {
        "port": f"--master-port {plan.port}",
        "host": f"--host {plan.host}",
        "agents": f"--agents {plan.agents}",
        "storage": f"--storage-host-path {plan.storage}",
        "tls": "--tls",
        "pools": f"--pool {' '.join(plan.pools)}",
        "pools_file": f"--pools {plan.pools_file}",
        "pools_content": "(resource pools)",
        "settings": f"({', '.join(sorted(plan.settings))})",
    }
    chosen = {name: text for name, text in options.items() if getattr(plan, name) != getattr(usual, name)}
    return chosen | ({} if plan.gpu else {"slots": f"--slots {plan.slots}"})


def data_directory() -> Path:
    """Return the per-user data directory: `STEADFAST_HOME`, else `XDG_DATA_HOME`, else `~/.local/share`.

    Exits with what to do if the user has no home directory.
    """
    chosen = os.environ.get("STEADFAST_HOME") or os.environ.get("XDG_DATA_HOME")
    if chosen:
        return Path(chosen)
    try:
        return Path.home() / ".local" / "share"
    except RuntimeError:
        sys.exit(
            f"user {os_user()} has no home directory on this host: set STEADFAST_HOME to a directory of this "
            "user, for the clusters on this machine"
        )
