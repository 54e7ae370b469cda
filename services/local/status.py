"""Shows which programs of a local cluster run, and what each reports as wrong."""

from __future__ import annotations

from typing import NamedTuple

from services.local.answers import count_workers, health_port, health_problems
from services.local.home import Home, Plan, chosen_options, option_of
from services.local.processes import is_alive

NOT_RUNNING, HEALTHY, UNHEALTHY = 1, 0, 2
"""Exit statuses: cluster not running, healthy, or unhealthy."""


class ProgramStatus(NamedTuple):
    """One program."""

    name: str
    pid: int
    problems: list[str]
    """What is wrong, one problem per line; empty if it is healthy."""


def program_statuses(home: Home) -> list[ProgramStatus]:
    """Return every program of a running cluster; empty if it is not running."""
    pids, ports = home.read("processes.json") or {}, home.read("ports.json") or {}
    supervisor = pids.pop("supervisor", 0)
    if not is_alive(supervisor):
        return []
    return [ProgramStatus(name, pid, _problems_of(name, pid, ports)) for name, pid in pids.items()]


def _problems_of(name: str, pid: int, ports: dict[str, int]) -> list[str]:
    if not is_alive(pid):
        return ["is not running; its log says why"]
    port = health_port(name, ports)
    return [] if port is None else health_problems(port)


def show(home: Home, plan: Plan) -> int:
    """Print every program with its problems. Returns the exit status."""
    programs = program_statuses(home)
    if not programs:
        options = " ".join(chosen_options(plan).values())
        print(
            f"cluster '{home.name}' is not running; start it again"
            f"{f' as it was, {options},' if options else ''} with: "
            f"det deploy local cluster-up{option_of(plan.name)}"
        )
        return NOT_RUNNING
    workers = count_workers(plan.address, home.authority(plan))
    here = "the gateway does not answer" if workers is None else f"{workers} worker{'s' * (workers != 1)}"
    print(f"cluster '{home.name}' at port {plan.port}: {here}")
    for program in programs:
        print(f"{program.name:14} {program.pid:8}  {'well' if not program.problems else program.problems[0]}")
        for line in program.problems[1:]:
            print(f"{'':25}{line}")
    return UNHEALTHY if any(program.problems for program in programs) else HEALTHY
