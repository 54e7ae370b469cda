"""Manages the templates of one worker: creates them while a slot is idle, and ends them to save memory."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

import structlog

from worker.warm.memory import Memory
from worker.warm.template import NoTemplate, Template, make
from worker.warm.wanted import MOST_MODULES, Cold, Key, Wanted, reported_names

MODULES = "modules.txt"
"""File in a run's folder with the modules that the run reported at its end."""
MOST_TEMPLATES = 4
MOST_KEPT = 50
"""Number of most recently used environments that are remembered."""
LIVES_S = 3600.0
LOOK_S = 5.0
REST = 5.0
"""After creating a template, wait this many times as long as it took before creating another."""
MOST_TRIES = 5

log = structlog.get_logger()


class Shelf:
    """What is known about one environment."""

    def __init__(self, key: Key, names: tuple[str, ...]) -> None:
        self.key = key
        self.names = names
        self.template: Template | None = None
        self.modules: dict[str, None] = {}
        """The modules that a template should load, in this order."""
        self.tried: set[str] = set()
        self.left_out: set[str] = set()
        """Packages that make an interpreter unfit to fork."""
        self.problem = ""
        self.rests_until = 0.0
        self.used_at = 0.0

    @property
    def lacks(self) -> bool:
        """Whether a new template would be more useful than the current one."""
        if self.problem or time.monotonic() < self.rests_until:
            return False
        return self.template is None or not self.modules.keys() <= self.tried

    def learn(self, names: list[str]) -> None:
        """Learn the modules that a run had loaded at its end."""
        fresh = [name for name in names if name.partition(".")[0] not in self.left_out]
        self.modules |= dict.fromkeys(fresh[: MOST_MODULES - len(self.modules)])

    def forget(self) -> None:
        """Forget everything learned: the packages have changed."""
        self.modules, self.tried, self.left_out, self.problem = {}, set(), set(), ""

    def drop(self) -> None:
        """End the template. Runs that were started from it continue."""
        if self.template is not None:
            self.template.end()
            self.template = None


class Nursery:
    """Starts runs warm where possible."""

    def __init__(
        self, idle: Callable[[], bool], memory: Memory, most: int = MOST_TEMPLATES, *, enabled: bool = True
    ) -> None:
        """`idle` returns whether a slot is free."""
        self._idle = idle
        self._memory = memory
        self._most = most if enabled else 0
        self._shelves: dict[Key, Shelf] = {}
        self._stir = asyncio.Event()
        self.starts = {"warm": 0, "cold": 0}

    @property
    def templates(self) -> int:
        """Number of templates."""
        return sum(shelf.template is not None for shelf in self._shelves.values())

    async def start(self, run_dir: Path, wanted: Wanted | Cold) -> str:
        """Start a prepared run warm. Returns the reason to start it cold instead, or ""."""
        why = wanted.reason if isinstance(wanted, Cold) else await self._try(run_dir, wanted)
        self.starts["cold" if why else "warm"] += 1
        return why

    async def _try(self, run_dir: Path, wanted: Wanted) -> str:
        if not self._most:
            return "warm starts are switched off on this worker"
        shelf = self._shelf(wanted)
        template = shelf.template
        if template is None:
            self._stir.set()
            return shelf.problem or "no template was ready"
        if both := wanted.importable & template.tops:
            return f"its code has a module '{min(both)}', which is already loaded from a package"
        if wanted.is_module and {wanted.main, f"{wanted.main}.__main__"} & template.modules:
            return f"{wanted.main} is loaded already, and would be run twice"
        if await template.start(wanted, run_dir):
            return ""
        # It ended, its packages have changed, or it does not answer: it is of no more use.
        if shelf.template is template:
            shelf.drop()
            shelf.forget()
            self._stir.set()
        return "its template can no longer be used, perhaps because packages have changed"

    async def ended(self, run_dir: Path, wanted: Wanted | Cold) -> None:
        """Record what a run had loaded when it ended; its slot is now idle."""
        if isinstance(wanted, Cold) or not self._most:
            return
        modules = await asyncio.to_thread(_said, run_dir / MODULES)
        shelf = self._shelf(wanted)
        shelf.learn(reported_names(modules))
        if shelf.lacks:
            self._stir.set()

    def _shelf(self, wanted: Wanted) -> Shelf:
        shelf = self._shelves.pop(wanted.key, None) or Shelf(wanted.key, wanted.names)
        shelf.used_at = time.monotonic()
        # Move the most recently used environment to the end.
        self._shelves[wanted.key] = shelf
        for key in list(self._shelves)[:-MOST_KEPT]:
            self._shelves.pop(key).drop()
        return shelf

    async def keep(self) -> None:
        """Create and end templates as needed until cancelled, then end all."""
        try:
            while True:
                self._end_some()
                if self._most and (self._idle() or self._stir.is_set()):
                    self._stir.clear()
                    await self._make_one()
                await self._stirred()
        finally:
            for shelf in self._shelves.values():
                shelf.drop()

    async def _stirred(self) -> None:
        try:
            async with asyncio.timeout(LOOK_S):
                await self._stir.wait()
        except TimeoutError:
            return

    def _end_some(self) -> None:
        now = time.monotonic()
        short, idle_templates = self._memory.is_short(), self.templates
        for shelf in self._shelves.values():
            if shelf.template is not None and (short or now - shelf.template.made_at > LIVES_S):
                shelf.drop()
                shelf.tried.clear()
        if short and idle_templates:
            log.warning("templates.ended", reason="memory is short", templates=idle_templates)

    async def _make_one(self) -> None:
        """Create the most recently wanted template that is lacking."""
        lacking = [shelf for shelf in reversed(self._shelves.values()) if shelf.lacks]
        if not lacking or self._memory.is_short():
            return
        shelf, began = lacking[0], time.monotonic()
        modules = [name for name in shelf.modules if name.partition(".")[0] not in shelf.left_out]
        try:
            fresh = await make(shelf.key, shelf.names, modules)
        except NoTemplate as error:
            self._without(shelf, error)
            return
        took = time.monotonic() - began
        shelf.drop()
        shelf.template = fresh
        shelf.tried |= set(modules)
        shelf.rests_until = time.monotonic() + REST * took
        log.info("template.made", user=shelf.key.user, modules=len(fresh.modules), seconds=round(took, 2))
        self._keep_to_budget(shelf)

    def _without(self, shelf: Shelf, error: NoTemplate) -> None:
        """Leave out the package at fault if it is known, else all packages; if that was tried, give up."""
        culprit = error.culprit.partition(".")[0]
        log.info("template.unfit", reason=str(error), without=culprit)
        if culprit and len(shelf.left_out) < MOST_TRIES:
            shelf.left_out.add(culprit)
        elif shelf.modules.keys() - shelf.tried:
            shelf.left_out |= {name.partition(".")[0] for name in shelf.modules}
        else:
            shelf.problem = f"no template can be made: {error}"
            return
        shelf.modules = {n: None for n in shelf.modules if n.partition(".")[0] not in shelf.left_out}
        self._stir.set()

    def _keep_to_budget(self, newest: Shelf) -> None:
        """End the least recently used templates, the newest one last."""
        with_one = [shelf for shelf in self._shelves.values() if shelf.template is not None]
        with_one.sort(key=lambda shelf: (shelf is newest, shelf.used_at))
        sizes = [shelf.template.size() for shelf in with_one if shelf.template is not None]
        while with_one and (len(with_one) > self._most or sum(sizes) > self._memory.budget):
            shelf = with_one.pop(0)
            size = sizes.pop(0)
            shelf.drop()
            if shelf is newest:
                budget = self._memory.budget // 2**20
                shelf.problem = f"its packages take {size // 2**20} MiB, and templates may take {budget}"


def _said(path: Path) -> bytes:
    """Read a file left by a script if it is a plain file; the worker may have more rights than the script."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    with open(file, "rb") as text:
        return text.read(2**21) if os.path.isfile(f"/proc/self/fd/{file}") else b""
