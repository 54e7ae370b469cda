"""Scripts of scenarios: they train batch by batch, and wait at one of them until their gate is open."""

import asyncio

from tests.simulation.script import Companion, Script
from worker.briefing import share_of

HOLD = 12
"""Batch at which every trial waits until its gate is open."""
BATCHES = 20
POLL_EVERY_S = 0.2


class Gates:
    """Instructions to the scripts of a scenario, and their notes."""

    def __init__(self):
        self.open = set()
        """Names of experiments whose trials need not wait."""
        self.failing = {}
        """(name of an experiment, rank) to the exit code with which that script ends at once."""
        self.orders = {}
        """(trial, run, rank) to the worker's briefing, and the slots."""
        self.batches = {}
        """Trial to the batches that it trained, in order, over all its runs."""

    def programs(self):
        """For `World.programs`."""
        return {
            "chief": lambda process: GatedScript(process, self),
            "companion": lambda process: GatedCompanion(process, self),
        }

    async def brief(self, process):
        """Brief a process with the real worker's code; returns the experiment's name."""
        assigned, host = process.assigned, process.host
        briefing = share_of(host.id, process.briefing)
        self.orders[assigned.trial_id, assigned.run, briefing.gang.rank] = briefing, process.slots
        return briefing.config["name"]


class GatedScript(Script):
    """The chief's script: saves when it is asked to leave, also while it waits at its gate."""

    def __init__(self, process, gates):
        super().__init__(process)
        self._gates = gates
        self._trained = gates.batches.setdefault(self.trial, [])

    async def _brief(self):
        self._gate = await self._gates.brief(self.process)

    def _behaviour(self):
        return "good"

    def _metric(self, length):
        return float(length)

    def _stride(self):
        return 1

    async def _step(self, steps, breaks):
        self._trained.append(steps)
        await self._report("training", steps)
        while not self._preempted and steps == HOLD and self._gate not in self._gates.open:
            await asyncio.sleep(POLL_EVERY_S)
        return await self._leave(steps) if self._preempted else None


class GatedCompanion(Companion):
    """Another rank, which fails if the scenario says so."""

    def __init__(self, process, gates):
        super().__init__(process)
        self._gates = gates

    async def run(self):
        name = await self._gates.brief(self._process)
        failing = self._gates.failing.get((name, self._process.rank))
        return failing if failing is not None else await super().run()
