"""A template that is made for an environment which is forgotten meanwhile does not stay behind."""

import asyncio
from types import SimpleNamespace

from worker.warm import template_pool
from worker.warm.template_pool import TemplatePool


class Made:
    """A template that does nothing."""

    modules, in_order, is_ended = frozenset(), [], False

    def end(self):
        self.is_ended = True

    def size(self):
        return 1


class Environment:
    """One like no other."""

    user = "ann"


def plan():
    return SimpleNamespace(key=Environment(), names=())


def test_a_template_of_a_forgotten_environment_is_ended(monkeypatch):
    monkeypatch.setattr(template_pool, "MAX_ENVIRONMENTS", 2)
    memory = SimpleNamespace(budget=2**34, is_short=lambda: False)
    pool, made = TemplatePool(lambda: True, memory), []

    async def make(*_):
        made.append(Made())
        if len(made) == 1:
            pool._entry(plan())
            pool._entry(plan())
        return made[-1]

    monkeypatch.setattr(template_pool, "make", make)

    async def story():
        pool._entry(plan())
        await pool._make_next()
        await pool._make_next()

    asyncio.run(story())
    assert [template.is_ended for template in made] == [True, False]
    assert pool.templates == 1
