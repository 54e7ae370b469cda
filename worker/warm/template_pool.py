"""Manages the templates of one worker: creates them while a slot is idle, and ends them to save memory."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import structlog

from worker.warm.memory import Memory
from worker.warm.template import NoTemplate, Template, make
from worker.warm.warm_start import MAX_MODULES, ColdStart, Key, WarmStart, reported_names

MODULES_FILE = "modules.txt"
"""File in a run's folder with the modules that the run reported at its end."""
MAX_TEMPLATES = 4
MAX_ENVIRONMENTS = 50
"""Number of most recently used environments that are remembered."""
MAX_AGE_S = 3600.0
POLL_EVERY_S = 5.0
COOLDOWN_FACTOR = 5.0
"""After creating a template, wait this many times as long as it took before creating another."""
MAX_EXCLUDED = 5
PATIENCE_S = 15.0
"""How long a run waits at most for a template that is being made. It then starts cold."""

log = structlog.get_logger()


class PoolEntry:
    """What is known about one environment."""

    def __init__(self, plan: WarmStart) -> None:
        self.key = plan.key
        self.names = plan.names
        self.script: WarmStart | None = plan
        """Its text shows what to load until runs have reported that. None if that cannot be forked."""
        self.template: Template | None = None
        self.modules: dict[str, None] = {}
        """The modules that a template should load, in this order."""
        self.tried_modules: set[str] = set()
        self.loaded_by_runs = 0
        """Number of modules that runs had to load themselves since the template was made."""
        self.excluded_packages: set[str] = set()
        """Packages that make an interpreter unfit to fork."""
        self.problem = ""
        self.cooldown_until = 0.0
        self.used_at = 0.0

    @property
    def needs_template(self) -> bool:
        """Whether a new template would be more useful than the current one."""
        if self.problem or time.monotonic() < self.cooldown_until:
            return False
        if self.template is None:
            return True
        # A new one loads again what the old one has. Runs have lost about as much to what that lacks.
        untried = len(self._untried())
        return untried > 0 and self.loaded_by_runs >= len(self.modules) - untried

    def _untried(self) -> set[str]:
        return self.modules.keys() - self.tried_modules

    def add_modules(self, names: list[str]) -> None:
        """Learn the modules that a run had loaded at its end."""
        fresh = [name for name in names if name.partition(".")[0] not in self.excluded_packages]
        self.modules |= dict.fromkeys(fresh[: MAX_MODULES - len(self.modules)])
        self.loaded_by_runs += len(set(fresh) - self.tried_modules)

    def forget(self) -> None:
        """Forget everything learned: the packages have changed."""
        self.modules, self.tried_modules, self.excluded_packages, self.problem = {}, set(), set(), ""

    def replace_template(self, fresh: Template, modules: list[str], took_s: float) -> None:
        """Use a new template, which was told to load `modules` and took so many seconds to make."""
        self.end_template()
        self.template = fresh
        if modules:
            self.cooldown_until = time.monotonic() + COOLDOWN_FACTOR * took_s
        else:
            # It has loaded what its script begins with. The first runs report what comes later.
            modules = fresh.in_order
            self.modules = dict.fromkeys(modules) | self.modules
        self.tried_modules |= set(modules)
        self.loaded_by_runs = len(self._untried())

    def end_template(self) -> None:
        """End the template. Runs that were started from it continue."""
        if self.template is not None:
            self.template.end()
            self.template = None


class TemplatePool:
    """Starts runs warm where possible."""

    def __init__(
        self, idle: Callable[[], bool], memory: Memory, most: int = MAX_TEMPLATES, *, enabled: bool = True
    ) -> None:
        """`idle` returns whether a slot is free."""
        self._has_idle_slot = idle
        self._memory = memory
        self._most = most if enabled else 0
        self._entries: dict[Key, PoolEntry] = {}
        self._wake = asyncio.Event()
        self._in_making: PoolEntry | None = None
        self._made = asyncio.Event()
        """Set while no template is being made."""
        self.starts = {"warm": 0, "cold": 0}

    @property
    def templates(self) -> int:
        """Number of templates."""
        return sum(entry.template is not None for entry in self._entries.values())

    async def wait_for_template(self, plan: WarmStart | ColdStart) -> None:
        """Wait while the template that a run would start from is being made for an earlier run.

        Started cold, the run would load the same packages beside it, and delay both (docs/decisions/0104).
        """
        if isinstance(plan, ColdStart) or not self._most:
            return
        entry = self._entry(plan)
        if entry.template is None and entry is self._in_making:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_S):
                    await self._made.wait()

    async def start(self, run_dir: Path, plan: WarmStart | ColdStart) -> str:
        """Start a prepared run warm. Returns the reason to start it cold instead, or ""."""
        why = plan.reason if isinstance(plan, ColdStart) else await self._start_warm(run_dir, plan)
        self.starts["cold" if why else "warm"] += 1
        return why

    async def _start_warm(self, run_dir: Path, plan: WarmStart) -> str:
        if not self._most:
            return "warm starts are switched off on this worker"
        entry = self._entry(plan)
        template = entry.template
        if template is None:
            self._wake.set()
            return entry.problem or "no template was ready"
        # A cold interpreter would import the script's own module; here the loaded package would win.
        if clashing := plan.importable & template.tops:
            return f"its code has a module '{min(clashing)}', which is already loaded from a package"
        # `python -m` runs a module as `__main__`. Its copy in the template would be a second one.
        if plan.is_module and {plan.main, f"{plan.main}.__main__"} & template.modules:
            return f"{plan.main} is loaded already, and would be run twice"
        if await template.start(plan, run_dir):
            return ""
        # It ended, its packages have changed, or it does not answer: it is of no more use.
        if entry.template is template:
            entry.end_template()
            entry.forget()
            self._wake.set()
        return "its template can no longer be used, perhaps because packages have changed"

    async def record_end(self, run_dir: Path, plan: WarmStart | ColdStart) -> None:
        """Record what a run had loaded when it ended; its slot is now idle."""
        if isinstance(plan, ColdStart) or not self._most:
            return
        entry, path = self._entry(plan), run_dir / MODULES_FILE
        modules = await asyncio.to_thread(_read_reported_modules, path) if _has_reported(path) else b""
        entry.add_modules(reported_names(modules))
        if entry.needs_template:
            self._wake.set()

    def _entry(self, plan: WarmStart) -> PoolEntry:
        entry = self._entries.pop(plan.key, None) or PoolEntry(plan)
        entry.used_at = time.monotonic()
        if entry.script is not None:
            # The folders of earlier runs may be gone.
            entry.script = plan
        # Move the most recently used environment to the end.
        self._entries[plan.key] = entry
        for key in list(self._entries)[:-MAX_ENVIRONMENTS]:
            self._entries.pop(key).end_template()
        return entry

    async def run_forever(self) -> None:
        """Create and end templates as needed until cancelled, then end all."""
        try:
            while True:
                self._end_expired()
                if self._most and (self._has_idle_slot() or self._wake.is_set()):
                    self._wake.clear()
                    await self._make_next()
                await self._wait_for_wake()
        finally:
            ended = [entry.template for entry in self._entries.values() if entry.template is not None]
            for entry in self._entries.values():
                entry.end_template()
            for template in ended:
                template.wait_until_gone()

    async def _wait_for_wake(self) -> None:
        try:
            async with asyncio.timeout(POLL_EVERY_S):
                await self._wake.wait()
        except TimeoutError:
            return

    def _end_expired(self) -> None:
        now = time.monotonic()
        short, idle_templates = self._memory.is_short(), self.templates
        for entry in self._entries.values():
            if entry.template is not None and (short or now - entry.template.made_at > MAX_AGE_S):
                entry.end_template()
                entry.tried_modules.clear()
        if short and idle_templates:
            log.warning("templates.ended", reason="memory is short", templates=idle_templates)

    async def _make_next(self) -> None:
        """Create the most recently wanted template that is lacking."""
        lacking = [entry for entry in reversed(self._entries.values()) if entry.needs_template]
        if not lacking or self._memory.is_short():
            return
        self._in_making = lacking[0]
        self._made.clear()
        try:
            await self._make(lacking[0])
        finally:
            self._in_making = None
            self._made.set()

    async def _make(self, entry: PoolEntry) -> None:
        began = time.monotonic()
        modules = [name for name in entry.modules if name.partition(".")[0] not in entry.excluded_packages]
        try:
            fresh = await make(entry.key, entry.names, modules, entry.script, entry.excluded_packages)
        except NoTemplate as error:
            self._exclude_culprit(entry, error)
            return
        if self._entries.get(entry.key) is not entry:
            # So many others were wanted meanwhile that it is not remembered: nobody would end its template.
            fresh.end()
            return
        took = time.monotonic() - began
        entry.replace_template(fresh, modules, took)
        log.info("template.made", user=entry.key.user, modules=len(fresh.modules), seconds=round(took, 2))
        self._enforce_budget(entry)

    def _exclude_culprit(self, entry: PoolEntry, error: NoTemplate) -> None:
        """Leave out the package at fault if it is known, else all packages; if that was tried, give up."""
        culprit = error.culprit.partition(".")[0]
        log.info("template.unfit", reason=str(error), without=culprit)
        # Package by package, so that one that starts threads does not cost the others their warm start.
        if culprit and len(entry.excluded_packages) < MAX_EXCLUDED:
            entry.excluded_packages.add(culprit)
        elif entry.modules.keys() - entry.tried_modules:
            entry.excluded_packages |= {name.partition(".")[0] for name in entry.modules}
        elif not entry.modules and entry.script is not None:
            entry.script = None
        else:
            entry.problem = f"no template can be made: {error}"
            return
        entry.modules = {n: None for n in entry.modules if n.partition(".")[0] not in entry.excluded_packages}
        self._wake.set()

    def _enforce_budget(self, newest: PoolEntry) -> None:
        """End the least recently used templates, the newest one last."""
        with_template = [entry for entry in self._entries.values() if entry.template is not None]
        with_template.sort(key=lambda entry: (entry is newest, entry.used_at))
        sizes = [entry.template.size() for entry in with_template if entry.template is not None]
        while with_template and (len(with_template) > self._most or sum(sizes) > self._memory.budget):
            entry = with_template.pop(0)
            size = sizes.pop(0)
            entry.end_template()
            if entry is newest:
                budget = self._memory.budget // 2**20
                entry.problem = f"its packages take {size // 2**20} MiB, and templates may take {budget}"


def _has_reported(path: Path) -> bool:
    """Whether a script has reported modules. Most have loaded none that their template had not."""
    return os.path.lexists(path)


def _read_reported_modules(path: Path) -> bytes:
    """Read a file left by a script if it is a plain file; the worker may have more rights than the script."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    with open(file, "rb") as text:
        return text.read(2**21) if os.path.isfile(f"/proc/self/fd/{file}") else b""
