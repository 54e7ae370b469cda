"""A run waits for a template that is being made for its environment, and for nothing else."""

import asyncio
from types import SimpleNamespace

import pytest

from worker.warm import template_pool
from worker.warm.template import NoTemplate
from worker.warm.template_pool import TemplatePool
from worker.warm.warm_start import ColdStart, Key, WarmStart


class Made:
    """A template that does nothing."""

    modules, in_order, tops = frozenset(), [], frozenset()

    def end(self):
        pass

    def size(self):
        return 1


def plan(user):
    return WarmStart(Key(user, ("python3",), ()), "train.py", False, (), ())


class Making:
    """A pool whose templates are made when the test says so."""

    def __init__(self, monkeypatch):
        self.finish = asyncio.Event()
        self.problem = ""
        self.pool = TemplatePool(lambda: True, SimpleNamespace(budget=2**34, is_short=lambda: False))
        monkeypatch.setattr(template_pool, "make", self._make)

    async def _make(self, *_):
        await self.finish.wait()
        if self.problem:
            raise NoTemplate(self.problem)
        return Made()

    async def begin(self, first):
        """A first run asks for a template; returns what makes it."""
        await self.pool.wait_for_template(first)
        self.pool._entry(first)
        making = asyncio.create_task(self.pool._make_next())
        while self.pool._in_making is None:
            await asyncio.sleep(0)
        return making


def test_who_comes_while_it_is_made_waits_for_it(monkeypatch):
    async def story():
        host = Making(monkeypatch)
        # The first of its environment did not wait: that would end here only with the template.
        making = await host.begin(plan("ann"))
        waiting = asyncio.create_task(host.pool.wait_for_template(plan("ann")))
        for other in (plan("ben"), ColdStart("it runs in a container")):
            await host.pool.wait_for_template(other)
        assert not waiting.done()
        host.finish.set()
        await waiting
        assert host.pool.templates == 1
        await host.pool.wait_for_template(plan("ann"))
        await making

    asyncio.run(story())


def test_nobody_waits_for_one_that_cannot_be_made(monkeypatch):
    async def story():
        host = Making(monkeypatch)
        host.problem = "its interpreter ended"
        making = await host.begin(plan("ann"))
        waiting = asyncio.create_task(host.pool.wait_for_template(plan("ann")))
        host.finish.set()
        await waiting
        await making
        assert host.pool.templates == 0
        await host.pool.wait_for_template(plan("ann"))

    asyncio.run(story())


def test_nobody_waits_for_ever(monkeypatch):
    monkeypatch.setattr(template_pool, "PATIENCE_S", 0.01)

    async def story():
        host = Making(monkeypatch)
        making = await host.begin(plan("ann"))
        await host.pool.wait_for_template(plan("ann"))
        assert not making.done()
        making.cancel()
        with pytest.raises(asyncio.CancelledError):
            await making
        # Whoever stops the pool leaves nobody waiting.
        assert host.pool._in_making is None

    asyncio.run(story())
