"""Processes that can be stopped and continued, as by SIGSTOP and SIGCONT: all their tasks stand still."""

from asyncio import get_running_loop
from collections.abc import Coroutine
from contextvars import ContextVar, copy_context

PROCESS = ContextVar("process", default=None)
"""The process that a new task belongs to; inherited by the tasks that it creates."""


class Process:
    """The tasks of one process."""

    def __init__(self):
        self.stopped = False
        self._waiting = []

    def stop(self):
        """From now on its tasks take no step. Timers keep running, and take effect when it continues."""
        self.stopped = True

    def resume(self):
        """Run everything that was held back."""
        self.stopped = False
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    def run(self, work):
        """Create a task of this process."""
        context = copy_context()
        context.run(PROCESS.set, self)
        return get_running_loop().create_task(work, context=context)

    def hold(self):
        """What a task awaits instead of taking its next step."""
        waiter = get_running_loop().create_future()
        self._waiting.append(waiter)
        # As its own `__await__` would tell the task.
        waiter._asyncio_future_blocking = True
        return waiter


def outside(work):
    """A task that belongs to no process, whoever creates it."""
    context = copy_context()
    context.run(PROCESS.set, None)
    return get_running_loop().create_task(work, context=context)


class Stoppable(Coroutine):
    """A coroutine that takes no step while its process is stopped; exceptions thrown into it wait as well."""

    def __init__(self, work, process):
        self._work = work
        self._process = process
        self._thrown = None

    def send(self, value):
        if self._process.stopped:
            return self._process.hold()
        if self._thrown is not None:
            thrown, self._thrown = self._thrown, None
            return self._work.throw(thrown)
        return self._work.send(value)

    def throw(self, error):
        if self._process.stopped:
            self._thrown = error
            return self._process.hold()
        return self._work.throw(error)

    def close(self):
        self._work.close()

    def __await__(self):
        return self._work.__await__()
