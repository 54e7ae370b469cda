"""An event that one service can neither fold nor save, until an administrator has it skipped."""

import asyncio

from det_contracts import codec, subjects
from det_contracts.events.gateway import DecisionsRetried, EventSkipped, SkippedEvent
from det_contracts.events.trial import StatusSet
from services.kit.log import Draft
from tests.simulation.violation import Violation

PATIENCE_S = 900.0
"""How long a replica may take to stand still, or to go on: it may crash meanwhile, or be cut off."""


class Poison:
    """The events of one world that some services cannot process."""

    def __init__(self):
        self._of = {}
        self.folded = ""
        """The owner that may have folded an event that it cannot save, and not know it yet."""

    def __bool__(self):
        return bool(self._of)

    def plant(self, rules, id):
        """Have an owner's fold fail on an event, after it has changed what it changes."""
        fold = rules.evolve

        def evolve(state, recorded):
            keys = tuple(fold(state, recorded))
            if recorded.id == id:
                raise LookupError(f"nobody thought of {id}")
            return keys

        self._of.setdefault(rules.owner, set()).add(id)
        # All replicas of the owner have the same rules.
        object.__setattr__(rules, "evolve", evolve)
        object.__setattr__(rules, "reads", None)

    def plant_for_saving(self, rules, databases, id):
        """Have an owner fail to save what follows from an event."""
        self._of.setdefault(rules.owner, set()).add(id)
        object.__setattr__(rules, "reads", None)
        for database in databases:
            database.refuses = id

    def has(self, owner, recorded):
        """Whether an event is without effect for an owner in the end."""
        return recorded.id in self._of.get(owner, ())

    def may_stand(self, owner):
        """Whether a replica of an owner has a reason to stand still."""
        return owner in self._of


def poisoned_event(owner, *, saving=False):
    """The trouble of a seed: one event that an owner cannot fold, or not save."""

    async def trouble(world, chance):
        await asyncio.sleep(30 + 60 * chance.random())
        id = f"poison-{owner}"
        if saving:
            world.poison.folded = owner
            world.poison.plant_for_saving(world.rules[owner], world.databases(owner), id)
        else:
            world.poison.plant(world.rules[owner], id)
        position = await _append(world, StatusSet(1, 1, "a status"), id, "trial:1")
        world.tell("poison", f"{owner} cannot {'save' if saving else 'fold'} {position}")
        await _until(world, owner, lambda failed: failed is not None and failed.position == position)
        world.poison.folded = ""
        _others_go_on(world, owner)
        # To try again changes nothing, and what another owner skips does not, either.
        end = await _append(world, DecisionsRetried(owner=owner, reason="test"), "retry", "user:op")
        other = next(other for other in world.rules if other != owner)
        await _append(world, _skip(other, 10**9), "skip-other", "user:op")
        await asyncio.sleep(20.0 * chance.random())
        await _until(world, owner, lambda failed: failed is not None and failed.position == position)
        steps = world.steps
        await asyncio.sleep(30.0)
        world.tell("poison", f"{world.steps - steps} steps while {owner} stood, read on from {end}")
        await _append(world, _skip(owner, position), "skip", "user:op")
        await _until(world, owner, lambda failed: failed is None)
        world.ledger.count("stood and went on")

    return trouble


def _skip(owner, position):
    return EventSkipped(
        owner=owner,
        stream=subjects.CONTROL,
        position=position,
        subject="",
        error="",
        skipped=(SkippedEvent(subjects.CONTROL, position),),
        reason="test",
    )


async def _append(world, event, id, actor):
    """Append past a broker that is full, or refuses."""
    body = codec.encode(event, id=id, actor=actor, at=world.clock())
    while world.disk.full or world.disk.refuses:
        await asyncio.sleep(1.0)
    return await world.disk.append(Draft(codec.subject_of(event), body, id))


async def _until(world, owner, true):
    """Wait until every replica that runs stands still, or none does."""
    ends = asyncio.get_running_loop().time() + PATIENCE_S
    while True:
        there = [replica for replica in world.of(owner) if replica.up]
        if there and all(true(replica.runner.standstill.failed) for replica in there):
            return
        if asyncio.get_running_loop().time() > ends:
            failures = {replica.name: replica.runner.standstill.failed for replica in there}
            world.fail(Violation("who stands still is told so, and goes on if told to", f"{failures}"))
            return
        await asyncio.sleep(1.0)


def _others_go_on(world, owner):
    standing = [
        replica.name
        for replica in world.replicas
        if replica.rules.owner in world.rules
        and replica.rules.owner != owner
        and replica.up
        and replica.runner.standstill.failed is not None
    ]
    if standing:
        world.fail(Violation("one service stands still alone", f"{standing}"))
