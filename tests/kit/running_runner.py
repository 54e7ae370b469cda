"""A runner over a log, for as long as a test looks at it."""

import asyncio
import contextlib

from services.kit.runner import Runner
from services.kit.saver import NullSaver


@contextlib.asynccontextmanager
async def running_runner(log, rules, saver=None, **options):
    """Run rules; fails where the runner ends by itself."""
    runner = Runner(rules, log, saver or NullSaver(rules.state), **options)
    task = asyncio.create_task(runner.run())
    try:
        await asyncio.wait_for(runner.ready.wait(), 60)
        yield runner
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled(), task.exception()
