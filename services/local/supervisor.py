"""Runs the processes of a local cluster until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from services.kit import broker, pools_file
from services.kit.host_processes import die_with_parent
from services.kit.hosts_named import is_loopback
from services.kit.settings import BadSettings
from services.local import log_rotation
from services.local.batch_staging import BatchStaging
from services.local.broker_care import BrokerCare
from services.local.certificate_care import keep_certificates
from services.local.forks import Forks
from services.local.home import Home, Plan, Wish
from services.local.keys import write_keys, write_worker
from services.local.on_demand import end_all
from services.local.processes import Child, Program, tell

RUN_AS = "STEADFAST_WORKER_RUN_AS"
SERVICES = ("intake", "searcher", "scheduler", "metrics", "checkpoints", "webhooks", "gateway")
ARCHIVE = "archive"
"""Runs where `STEADFAST_ARCHIVE` names a place."""
PROVISIONER = "provisioner"
"""Runs where a pool of the file with the pools gets workers by itself."""
POOLS = "pools.json"
"""The file with the pools, where the plan itself says them."""
WITHOUT_DATABASE = ("intake", ARCHIVE, PROVISIONER)


class Cluster:
    """The programs of one plan, and what they need on disk."""

    def __init__(self, plan: Plan, home: Home) -> None:
        self.plan = plan
        self.home = home
        wanted = plan.settings.get("STEADFAST_ARCHIVE") or os.environ.get("STEADFAST_ARCHIVE")
        self.services = (*SERVICES, ARCHIVE) if wanted else SERVICES
        if _grows(plan):
            self.services = (*self.services, PROVISIONER)
        """The programs of the control plane, by name."""
        self._ports = self._choose_ports()
        self._authority = write_keys(home.folder("secrets"))
        self._certificates = home.certificates(plan)

    def port(self, name: str) -> int:
        """The port of a program, or `monitor` for the broker's pages."""
        return self._ports[name]

    @property
    def log_folder(self) -> Path:
        """Where the broker keeps the log."""
        return self.home.folder("broker")

    @property
    def on_demand(self) -> Path:
        """Where the workers have their folders that pools asked for."""
        return self.home.folder("on-demand")

    def programs(self) -> list[Program]:
        """The broker first, then the services, then the workers."""
        names = [*self.services, *worker_ids(self.plan)]
        return [self._broker(), *(self._python(name) for name in names)]

    def worker(self, id: str) -> Program:
        """One worker, also one that the plan does not have; it is in the first pool."""
        return self._python(id)

    def hold_ports(self, until: contextlib.ExitStack) -> None:
        """Keep what else runs on this machine from being given a port of ours while its program is away."""
        for port in self._ports.values():
            # One that is taken already is told by the program that wants to listen on it.
            with contextlib.suppress(OSError):
                until.enter_context(broker.held_port(port))

    def _choose_ports(self) -> dict[str, int]:
        # Kept: running scripts must find the broker again after a restart, and Prometheus everything else.
        ports = self.home.read("ports.json") or {}
        with contextlib.ExitStack() as chosen:
            for name in ("broker", "monitor", *self.services, *worker_ids(self.plan)):
                if name not in ports:
                    # Held until all are chosen: the system hands out a port that was let go at any time.
                    ports[name] = broker.port_of(chosen.enter_context(broker.held_port()))
        self.home.write("ports.json", ports)
        self._tell_prometheus(ports)
        return ports

    def _tell_prometheus(self, ports: dict[str, int]) -> None:
        """Leave a file that names all pages with numbers, for Prometheus' `file_sd_configs`."""
        names = (*self.services, *worker_ids(self.plan))
        targets = [{"targets": [f"127.0.0.1:{ports[name]}"], "labels": {"program": name}} for name in names]
        self.home.write("prometheus-targets.json", targets)

    def _broker(self) -> Program:
        shown = self._certificates
        config = broker.write_config(
            self.log_folder,
            port=self._ports["broker"],
            monitor_port=self._ports["monitor"],
            host=self.plan.broker_host,
            authority=self._authority,
            tls=broker.Tls(shown.certificate, shown.key, shown.authority) if shown is not None else None,
        )
        env = broker.environment(os.environ, os.cpu_count() or 1)
        return Program("broker", broker.command(config), env, self._log("broker"))

    def _python(self, name: str) -> Program:
        module = f"services.{name}" if name in self.services else "worker"
        # -P: a folder called `services` or `worker` where the cluster was started is not the platform.
        command = [sys.executable, "-P", "-m", module]
        return Program(name, command, self._environment(name), self._log(name))

    def _environment(self, name: str) -> dict[str, str]:
        home, plan = self.home, self.plan
        set_variables = dict(os.environ) | {
            "STEADFAST_NATS_URL": plan.broker_url(self._ports["broker"]),
            "STEADFAST_NATS_CREDENTIALS": str(self._credentials(name)),
            "STEADFAST_BLOBS": str(home.folder("blobs")),
            "STEADFAST_CLUSTER_ID": home.secret("cluster-id").read_text(),
            "STEADFAST_CLUSTER_NAME": plan.name,
        }
        if self._certificates is not None:
            set_variables["STEADFAST_TLS_CA"] = str(self._certificates.authority)
        if name in self._ports:
            set_variables["STEADFAST_HEALTH_PORT"] = str(self._ports[name])
        if name in self.services and name not in WITHOUT_DATABASE:
            set_variables["STEADFAST_DATABASE_URL"] = f"sqlite:///{home.folder('databases') / name}.db"
        if name in self.services:
            set_variables["STEADFAST_LOG_DISK"] = str(self.log_folder)
        if name == "gateway":
            set_variables |= self._gateway()
        if name == "webhooks":
            set_variables["STEADFAST_SEALING_KEY"] = str(home.secret("sealing-key"))
            set_variables["STEADFAST_PUBLIC_URL"] = plan.address
        if name == "scheduler":
            set_variables["STEADFAST_TASK_KEY"] = str(self.home.secret("task-key"))
        if name in ("gateway", "scheduler", PROVISIONER) and plan.pools_file:
            set_variables["STEADFAST_POOLS"] = plan.pools_file
        if name == PROVISIONER:
            set_variables |= self._of_workers()
            set_variables["STEADFAST_PROVISIONER_HOME"] = str(self.on_demand)
            set_variables["STEADFAST_WORKER_SIGNING"] = str(home.folder("secrets") / "worker-signing.json")
        if name not in self.services:
            set_variables |= self._worker(name)
        return set_variables | self._reach() | plan.settings

    def _credentials(self, name: str) -> Path:
        secrets = self.home.folder("secrets")
        if name in self.services:
            return secrets / f"{name}.creds"
        return write_worker(self._authority, secrets / "workers" / f"{name}.creds", name)

    def _reach(self) -> dict[str, str]:
        """What the platform may touch of the files that people name (docs/decisions/0030)."""
        # Guides keep checkpoints in /tmp. Who can ask a cluster on loopback for a file can read it anyway.
        here = is_loopback(self.plan.host)
        shared = tempfile.gettempdir() if here else ""
        return {
            "STEADFAST_CHECKPOINTS": str(self._storage()),
            "STEADFAST_STORAGE_ROOTS": shared,
            "STEADFAST_REACHABLE": "127.0.0.0/8,::1/128" if here else "",
            # All clusters of this user, but not the checkpoints in them: those are named, and lie deeper.
            "STEADFAST_PRIVATE_PATHS": str(self.home.path.parent),
        }

    def _storage(self) -> Path:
        return Path(self.plan.storage) if self.plan.storage else self._own_storage()

    def _gateway(self) -> dict[str, str]:
        password = self.home.first_password()
        set_variables = {"STEADFAST_INITIAL_PASSWORD_FILE": str(password)} if password is not None else {}
        if self._certificates is not None:
            set_variables["STEADFAST_TLS_CERT"] = str(self._certificates.certificate)
            set_variables["STEADFAST_TLS_KEY"] = str(self._certificates.key)
        return set_variables | {
            "STEADFAST_HOST": self.plan.host,
            "STEADFAST_PORT": str(self.plan.port),
            "STEADFAST_TOKEN_KEY": str(self.home.secret("token-key")),
            "STEADFAST_SEALING_KEY": str(self.home.secret("sealing-key")),
            "STEADFAST_TASK_KEY": str(self.home.secret("task-key")),
        }

    def _own_storage(self) -> Path:
        """The cluster's folder for checkpoints: open to tasks where they run as other users."""
        folder = self.home.folder("checkpoints")
        if os.environ.get(RUN_AS) or self.plan.settings.get(RUN_AS):
            # As with /tmp: everybody may add to it, and nobody may take away what is another's.
            folder.chmod(0o1777)
        return folder

    def _worker(self, name: str) -> dict[str, str]:
        planned = worker_ids(self.plan)
        return {
            "STEADFAST_WORKER_ID": name,
            "STEADFAST_WORKER_HOME": str(self.home.folder("workers", name)),
            "STEADFAST_WORKER_POOL": self.plan.pool_of(planned.index(name) if name in planned else 0),
            "STEADFAST_WORKER_SLOTS": str(self.plan.slots),
            **self._of_workers(),
        }

    def _of_workers(self) -> dict[str, str]:
        """What all workers are told, also those that pools ask for."""
        return {
            "STEADFAST_WORKER_GPU": str(self.plan.gpu).lower(),
            "STEADFAST_WORKER_PYTHON": self.plan.python,
            "STEADFAST_SEALING_KEY": str(self.home.secret("sealing-key")),
            "STEADFAST_TRIAL_SIGNING": str(self.home.folder("secrets") / "trial-signing.json"),
            "STEADFAST_MASTER_URL": self.plan.address,
        }

    def _log(self, name: str) -> Path:
        return self.home.folder("logs") / f"{name}.log"


def _with_pools_file(plan: Plan, home: Home) -> Plan:
    """The plan, with a file for what it says of pools itself."""
    if not plan.pools_content:
        return plan
    home.write(POOLS, plan.pools_content)
    return replace(plan, pools_file=str(home.path / POOLS))


def _grows(plan: Plan) -> bool:
    """Whether a pool gets workers by itself. A file that makes no sense is the scheduler's to refuse."""
    try:
        content = pools_file.read(Path(plan.pools_file)) if plan.pools_file else {}
        return any(pool.get("provider") for pool in content.get("resource_pools") or ())
    except (BadSettings, AttributeError, TypeError):
        return False


def worker_ids(plan: Plan) -> list[str]:
    """One worker is called after the host, further ones are numbered."""
    host = "".join(c if c.isalnum() or c in "-_" else "-" for c in os.uname().nodename)[:48] or "worker"
    return [host if plan.agents == 1 else f"{host}-{number}" for number in range(1, plan.agents + 1)]


async def supervise(plan: Plan, home: Home) -> None:
    """Start everything, keep it running, and stop it in reverse order when this task is cancelled."""
    pids: dict[str, int] = {"supervisor": os.getpid()}
    plan = _with_pools_file(plan, home)

    def note(name: str, pid: int) -> None:
        pids[name] = pid
        try:
            home.write("processes.json", pids)
        except OSError as error:
            # On a full disk the program runs all the same.
            tell(f"processes.json cannot be written: {error}")

    cluster = Cluster(plan, home)
    programs = cluster.programs()
    for program in programs:
        home.ask(program.name, Wish())
    modules = [*(f"services.{name}" for name in cluster.services), "worker"]
    forks = Forks(home.path, modules, home.folder("logs") / "services.log", die_with_parent)
    children = [Child(program, note, home.wish, forks) for program in programs]
    with contextlib.ExitStack() as held:
        cluster.hold_ports(held)
        tasks = [asyncio.create_task(child.keep_running()) for child in children]
        care = BrokerCare(children[0].end, cluster.port("monitor"), cluster.log_folder)
        tasks.append(asyncio.create_task(care.keep()))
        staging = BatchStaging(cluster.log_folder)
        tasks.append(asyncio.create_task(staging.keep()))
        tasks.append(asyncio.create_task(log_rotation.keep_small(home.folder("logs"))))
        tasks.append(
            asyncio.create_task(keep_certificates(lambda: home.certificates(plan), children[0].reload))
        )
        try:
            await asyncio.gather(*tasks)
        except asyncio.CancelledError:
            # Workers first: they end trials and say so while the broker still listens.
            first = 1 + len(cluster.services)
            await asyncio.gather(
                *(member.stop() for member in children if member.program.name == PROVISIONER)
            )
            on_demand = asyncio.to_thread(end_all, cluster.on_demand)
            await asyncio.gather(on_demand, *(child.stop() for child in children[first:]))
            for group in (children[1:first], children[:1]):
                await asyncio.gather(*(child.stop() for child in group))
            forks.end()
            staging.clear()
            (home.path / "processes.json").unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def when_ended(pid: int, then: Callable[[], object]) -> Iterator[None]:
    """Call `then` when a process is gone; at once if it is gone already, never for 0."""
    if not pid:
        yield
        return
    loop = asyncio.get_running_loop()
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        then()
        yield
        return
    loop.add_reader(watched, lambda: (loop.remove_reader(watched), then()))
    try:
        yield
    finally:
        loop.remove_reader(watched)
        os.close(watched)


def run(plan: Plan, home: Home) -> None:
    """The supervisor process: until SIGTERM or SIGINT."""

    async def until_stopped() -> None:
        work = asyncio.ensure_future(supervise(plan, home))
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, work.cancel)
        with when_ended(plan.ends_with, work.cancel):
            await asyncio.wait([work])
        if not work.cancelled():
            work.result()

    asyncio.run(until_stopped())
