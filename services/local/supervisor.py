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

from det_contracts.metrics_shards import FURTHER_SHARDS, OWNER
from services.kit import broker, pools_file
from services.kit.host_addresses import is_loopback
from services.kit.settings import BadSettings
from services.local import log_rotation
from services.local.batch_staging import BatchStaging
from services.local.broker_recovery import BrokerRecovery
from services.local.certificate_renewal import renew_certificates
from services.local.fork_client import ForkClient
from services.local.home import RUN_AS, SHARDS, Home, Plan, ProgramRequest
from services.local.keys import write_keys, write_worker
from services.local.on_demand import stop_all
from services.local.processes import Child, Program, log_line

SERVICES = ("intake", "searcher", "scheduler", "metrics", "checkpoints", "webhooks", "gateway")
ARCHIVE = "archive"
"""Runs if `STEADFAST_ARCHIVE` is set."""
PROVISIONER = "provisioner"
"""Runs if a pool in the pools file provisions its own workers."""
POOLS = "pools.json"
"""Name of the pools file written from the plan, if the plan itself configures pools."""
WITHOUT_DATABASE = ("intake", ARCHIVE, PROVISIONER)


class Cluster:
    """The programs of one plan, and the files they need."""

    def __init__(self, plan: Plan, home: Home, held: contextlib.ExitStack | None = None) -> None:
        """Prepare the programs. Their ports are reserved until `held` is closed, if it is given.

        Another program on this machine could take a port before its own program listens on it, now or while
        it is down.
        """
        self.plan = plan
        self.home = home
        wanted = plan.settings.get("STEADFAST_ARCHIVE") or os.environ.get("STEADFAST_ARCHIVE")
        self.services = (*SERVICES, *further_shards(plan), *((ARCHIVE,) if wanted else ()))
        if _has_provider(plan):
            self.services = (*self.services, PROVISIONER)
        """Names of the control plane's programs."""
        self._ports = self._choose_ports(held)
        self._authority = write_keys(home.folder("secrets"))
        self._certificates = home.certificates(plan)

    def port(self, name: str) -> int:
        """Return the port of a program, or of the broker's monitoring pages for `monitor`."""
        return self._ports[name]

    @property
    def log_folder(self) -> Path:
        """The folder in which the broker stores the log."""
        return self.home.folder("broker")

    @property
    def on_demand(self) -> Path:
        """The folder for workers that pools provision."""
        return self.home.folder("on-demand")

    def programs(self) -> list[Program]:
        """Return all programs: the broker first, then the services, then the workers."""
        names = [*self.services, *worker_ids(self.plan)]
        return [self._broker_program(), *(self._python_program(name) for name in names)]

    def worker(self, id: str) -> Program:
        """Return a worker's program. A worker that is not in the plan joins the first pool."""
        return self._python_program(id)

    def _choose_ports(self, held: contextlib.ExitStack | None) -> dict[str, int]:
        # Ports are kept: running scripts must find the broker again after a restart, and Prometheus the rest.
        ports = self.home.read("ports.json") or {}
        with contextlib.ExitStack() as reserved:
            for name in ("broker", "monitor", *self.services, *worker_ids(self.plan)):
                if name not in ports:
                    # Reserve each port until all are chosen; the system may hand out a released port again.
                    ports[name] = broker.port_of(reserved.enter_context(broker.held_port()))
                elif held is not None:
                    # If a port is taken already, the program that listens on it reports that.
                    with contextlib.suppress(OSError):
                        reserved.enter_context(broker.held_port(ports[name]))
            if held is not None:
                held.enter_context(reserved.pop_all())
        self.home.write("ports.json", ports)
        self._write_prometheus_targets(ports)
        return ports

    def _write_prometheus_targets(self, ports: dict[str, int]) -> None:
        """Write a file with all metrics pages, for Prometheus' `file_sd_configs`."""
        names = (*self.services, *worker_ids(self.plan))
        targets = [{"targets": [f"127.0.0.1:{ports[name]}"], "labels": {"program": name}} for name in names]
        self.home.write("prometheus-targets.json", targets)

    def _broker_program(self) -> Program:
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
        return Program("broker", broker.command(config), env, self._log_path("broker"))

    def _python_program(self, name: str) -> Program:
        module = module_of(name) if name in self.services else "worker"
        # -P: ignore folders named `services` or `worker` in the directory where the cluster was started.
        command = [sys.executable, "-P", "-m", module]
        return Program(name, command, self._environment(name), self._log_path(name))

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
        if name in FURTHER_SHARDS:
            set_variables["STEADFAST_METRICS_SHARD"] = name.rpartition("-")[2]
        if name in self.services and name not in WITHOUT_DATABASE:
            set_variables["STEADFAST_DATABASE_URL"] = f"sqlite:///{home.folder('databases') / name}.db"
        if name in self.services:
            set_variables["STEADFAST_LOG_DISK"] = str(self.log_folder)
        if name == "gateway":
            set_variables |= self._gateway_settings()
        if name == "webhooks":
            set_variables["STEADFAST_SEALING_KEY"] = str(home.secret("sealing-key"))
            set_variables["STEADFAST_PUBLIC_URL"] = plan.address
        if name == "scheduler":
            set_variables["STEADFAST_TASK_KEY"] = str(self.home.secret("task-key"))
        if name in ("gateway", "scheduler", PROVISIONER) and plan.pools_file:
            set_variables["STEADFAST_POOLS"] = plan.pools_file
        if name == PROVISIONER:
            set_variables |= self._common_worker_settings()
            set_variables["STEADFAST_PROVISIONER_HOME"] = str(self.on_demand)
            set_variables["STEADFAST_WORKER_SIGNING"] = str(home.folder("secrets") / "worker-signing.json")
        if name not in self.services:
            set_variables |= self._worker_settings(name)
        # The user's own settings come last, and win.
        return set_variables | self._access_settings() | plan.settings

    def _credentials(self, name: str) -> Path:
        secrets = self.home.folder("secrets")
        if name in self.services:
            return secrets / f"{name}.creds"
        return write_worker(self._authority, secrets / "workers" / f"{name}.creds", name)

    def _access_settings(self) -> dict[str, str]:
        """Return the settings for what the platform may touch of user-named files (docs/decisions/0030)."""
        # Guides keep checkpoints in /tmp. Anyone who can ask a loopback cluster for a file can read it
        # anyway.
        here = is_loopback(self.plan.host)
        shared = tempfile.gettempdir() if here else ""
        return {
            "STEADFAST_CHECKPOINTS": str(self._storage()),
            "STEADFAST_STORAGE_ROOTS": shared,
            "STEADFAST_REACHABLE": "127.0.0.0/8,::1/128" if here else "",
            # All clusters of this user, but not the checkpoints in them, which are named by a longer path.
            "STEADFAST_PRIVATE_PATHS": str(self.home.path.parent),
        }

    def _storage(self) -> Path:
        return Path(self.plan.storage) if self.plan.storage else self._default_storage()

    def _gateway_settings(self) -> dict[str, str]:
        password = self.home.initial_password_file()
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

    def _default_storage(self) -> Path:
        """Return the cluster's checkpoint folder, writable by tasks if they run as other users."""
        folder = self.home.folder("checkpoints")
        if os.environ.get(RUN_AS) or self.plan.settings.get(RUN_AS):
            # Anyone may add checkpoints, no one may remove those of others, or see their ids before they are
            # registered (decision 97).
            folder.chmod(0o1733)
        return folder

    def _worker_settings(self, name: str) -> dict[str, str]:
        planned = worker_ids(self.plan)
        return {
            "STEADFAST_WORKER_ID": name,
            "STEADFAST_WORKER_HOME": str(self.home.folder("workers", name)),
            "STEADFAST_WORKER_POOL": self.plan.pool_of(planned.index(name) if name in planned else 0),
            "STEADFAST_WORKER_SLOTS": str(self.plan.slots),
            **self._common_worker_settings(),
        }

    def _common_worker_settings(self) -> dict[str, str]:
        """Return the settings common to all workers, including those that pools provision."""
        return {
            "STEADFAST_WORKER_GPU": str(self.plan.gpu).lower(),
            "STEADFAST_WORKER_PYTHON": self.plan.python,
            "STEADFAST_SEALING_KEY": str(self.home.secret("sealing-key")),
            "STEADFAST_TRIAL_SIGNING": str(self.home.folder("secrets") / "trial-signing.json"),
            "STEADFAST_MASTER_URL": self.plan.address,
        }

    def _log_path(self, name: str) -> Path:
        return self.home.folder("logs") / f"{name}.log"


def _add_pools_file(plan: Plan, home: Home) -> Plan:
    """Return the plan with a pools file, if it configures pools itself."""
    if not plan.pools_content:
        return plan
    home.write(POOLS, plan.pools_content)
    return replace(plan, pools_file=str(home.path / POOLS))


def _has_provider(plan: Plan) -> bool:
    """Whether a pool provisions its own workers. An invalid file is reported by the scheduler."""
    try:
        content = pools_file.read(Path(plan.pools_file)) if plan.pools_file else {}
        return any(pool.get("provider") for pool in content.get("resource_pools") or ())
    except (BadSettings, AttributeError, TypeError):
        return False


def further_shards(plan: Plan) -> tuple[str, ...]:
    """Return the metrics processes after the first, by the setting. An invalid one is reported by metrics."""
    wanted = plan.settings.get(SHARDS) or os.environ.get(SHARDS) or "1"
    return FURTHER_SHARDS[: int(wanted) - 1] if wanted.isdecimal() and int(wanted) else ()


def module_of(service: str) -> str:
    """Return the module of a service's program."""
    return f"services.{OWNER if service in FURTHER_SHARDS else service}"


def worker_ids(plan: Plan) -> list[str]:
    """Return the worker names: the host name, numbered if there are several workers."""
    host = "".join(c if c.isalnum() or c in "-_" else "-" for c in os.uname().nodename)[:48] or "worker"
    return [host if plan.agents == 1 else f"{host}-{number}" for number in range(1, plan.agents + 1)]


async def supervise(cluster: Cluster, forks: ForkClient) -> None:
    """Start everything, keep it running, and stop it in reverse order when this task is cancelled."""
    pids: dict[str, int] = {"supervisor": os.getpid()}
    plan, home = cluster.plan, cluster.home

    def record_pid(name: str, pid: int) -> None:
        pids[name] = pid
        try:
            home.write("processes.json", pids)
        except OSError as error:
            # The program runs even on a full disk.
            log_line(f"processes.json cannot be written: {error}")

    programs = cluster.programs()
    for program in programs:
        # A request of an earlier run must not keep a program of this one stopped.
        home.write_request(program.name, ProgramRequest())
    children = [Child(program, record_pid, home.read_request, forks) for program in programs]
    tasks = [asyncio.create_task(child.keep_running()) for child in children]
    # `end`, not `stop`: the child starts again by itself.
    recovery = BrokerRecovery(children[0].end, cluster.port("monitor"), cluster.log_folder)
    tasks.append(asyncio.create_task(recovery.run()))
    staging = BatchStaging(cluster.log_folder)
    tasks.append(asyncio.create_task(staging.run()))
    tasks.append(asyncio.create_task(log_rotation.rotate_periodically(home.folder("logs"))))
    tasks.append(asyncio.create_task(renew_certificates(lambda: home.certificates(plan), children[0].reload)))
    try:
        await asyncio.gather(*tasks)
    except asyncio.CancelledError:
        # Workers first: they end trials and report that while the broker still runs.
        first_worker = 1 + len(cluster.services)
        # The provisioner even before its workers, or it would start others in their place.
        await asyncio.gather(*(member.stop() for member in children if member.program.name == PROVISIONER))
        on_demand = asyncio.to_thread(stop_all, cluster.on_demand)
        await asyncio.gather(on_demand, *(child.stop() for child in children[first_worker:]))
        for group in (children[1:first_worker], children[:1]):
            await asyncio.gather(*(child.stop() for child in group))
        # Only after all services have ended: the server's end kills its forks.
        forks.end()
        # After the broker, which still writes batches there while it stops.
        staging.clear()
        (home.path / "processes.json").unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def call_when_ended(pid: int, then: Callable[[], object]) -> Iterator[None]:
    """Call `then` when a process ends: at once if it is already gone, never for pid 0."""
    if not pid:
        yield
        return
    loop = asyncio.get_running_loop()
    try:
        # A descriptor, because the pid may belong to another process by the time it is looked at.
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
    """Run the supervisor process until SIGTERM or SIGINT."""
    with contextlib.ExitStack() as held:
        _run(Cluster(_add_pools_file(plan, home), home, held))


def _run(cluster: Cluster) -> None:
    plan, home = cluster.plan, cluster.home
    modules = [*dict.fromkeys(map(module_of, cluster.services)), "worker"]
    forks = ForkClient(home.path, modules, home.folder("logs") / "services.log")
    forks.fork_server()

    async def run_until_stopped() -> None:
        work = asyncio.ensure_future(supervise(cluster, forks))
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, work.cancel)
        with call_when_ended(plan.ends_with, work.cancel):
            await asyncio.wait([work])
        if not work.cancelled():
            work.result()

    asyncio.run(run_until_stopped())
