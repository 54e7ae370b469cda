"""Waits for a cluster that starts: says for what, and gives up when nothing moves any more."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from services.kit import host_processes
from services.local import logs
from services.local.answers import count_workers, health_port, health_problems
from services.local.home import Home, Plan
from services.local.preconditions import CannotStart

POLL_S = 0.03
LOOK_S = 1.0
QUIET_S = 5.0
"""Seconds before the first look at what is waited for. A start usually takes less."""
STALL_S = 180.0
"""Seconds without progress after which a start is given up."""
AT_WORK = 0.2
"""Share of that time for which a program has to run, or to wait for a processor, to count as at work."""


class Progress:
    """Whether a start moves. How long it takes says nothing: the machine may be slow, or the log long.

    It moves when a further program is ready, and when a program gets further than any process of it before.
    One that fails again and again does not.
    """

    def __init__(self, now: float) -> None:
        self._since = now
        self._ready: frozenset[str] = frozenset()
        self._reached: dict[str, float] = {}
        self._at_mark: dict[str, float] = {}

    def note(self, now: float, ready: frozenset[str], work: Mapping[str, float]) -> None:
        """Note which programs are ready, and the seconds for which each of the others has been at work."""
        for name, seconds in work.items():
            self._reached[name] = max(seconds, self._reached.get(name, 0.0))
        moved = any(self._reached[name] - self._at_mark.get(name, 0.0) >= AT_WORK * STALL_S for name in work)
        if moved or not ready <= self._ready:
            self._since, self._ready = now, self._ready | ready
            self._at_mark = dict(self._reached)

    def has_stalled(self, now: float) -> bool:
        """Whether nothing has moved for too long."""
        return now - self._since >= STALL_S


class Start:
    """One start of a cluster, seen from outside."""

    def __init__(self, plan: Plan, home: Home, supervisor: int) -> None:
        self._plan = plan
        self._home = home
        self._supervisor = supervisor
        self._begun = self._next_look = time.monotonic()
        self._next_look += QUIET_S
        self._progress = Progress(self._begun)
        self._shown: list[str] = []
        self._ready: frozenset[str] = frozenset()

    def is_up(self) -> bool:
        """Whether the gateway answers and all workers have registered."""
        workers = count_workers(self._plan.address, self._home.authority(self._plan))
        return workers is not None and workers >= self._plan.agents

    def look(self) -> None:
        """Now and then, look at each program and print, on a terminal, what is waited for.

        Raises `CannotStart` if nothing moves.
        """
        now = time.monotonic()
        if now < self._next_look:
            return
        missing = self._missing()
        pids = self._pids()
        self._ready |= frozenset(pids) - frozenset(missing)
        work = {name: host_processes.active_s(pid) for name, pid in pids.items() if name in missing}
        loading = host_processes.children_of(self._supervisor) - set(pids.values())
        work |= {"supervisor": max(map(host_processes.active_s, [self._supervisor, *loading]))}
        self._progress.note(now, self._ready, work)
        if self._progress.has_stalled(now):
            raise CannotStart(self._failure(missing))
        if sys.stderr.isatty() and list(missing) != self._shown:
            self._shown = list(missing)
            print(f"after {now - self._begun:.0f} s, waiting for: {', '.join(missing)}", file=sys.stderr)
        self._next_look = time.monotonic() + LOOK_S

    def _pids(self) -> dict[str, int]:
        pids = self._home.read("processes.json") or {}
        return {name: pid for name, pid in pids.items() if name != "supervisor"}

    def _missing(self) -> dict[str, str]:
        """Return each program that is not ready, with what is known about it."""
        ports, pids = self._home.read("ports.json") or {}, self._pids()
        missing = {}
        for name in pids:
            port = health_port(name, ports)
            if port is not None and (problems := health_problems(port, LOOK_S)):
                missing[name] = problems[0]
        if not set(pids) - {"broker"}:
            missing["services"] = "are being loaded"
        # Each program is well, but they have not found each other.
        return missing or {"the workers": f"not all of {self._plan.agents} have registered with the gateway"}

    def _failure(self, missing: Mapping[str, str]) -> str:
        folder = self._home.path / "logs"
        lines = [f"the cluster has made no progress for {STALL_S:.0f} s; see {folder}. Not ready:"]
        for name, problem in missing.items():
            lines.append(f"  {name}: {problem}")
            lines += [f"    {line}" for line in logs.last_lines(folder / f"{name}.log")]
        return "\n".join(lines)


def wait_until_up(
    start: Start, home: Home, exit_status: Callable[[], int | None], log_sizes: Mapping[Path, int]
) -> None:
    """Wait until a cluster is up. Raises `CannotStart` with the reason if it ends or makes no progress."""
    folder = home.path / "logs"
    while not start.is_up():
        if (status := exit_status()) is not None:
            text = f"the supervisor ended with status {status}; see {folder}"
            raise CannotStart("\n".join([text, *logs.last_lines(folder / "supervisor.log")]))
        if refusals := logs.refusals(folder, log_sizes):
            raise CannotStart("\n".join(["a program refuses its settings:", *refusals]))
        start.look()
        time.sleep(POLL_S)
