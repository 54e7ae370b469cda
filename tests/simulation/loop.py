"""An event loop with virtual time: when nothing is ready, time jumps to the next timer."""

import asyncio
import sys
from asyncio import events
from collections import deque
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from heapq import heappop, heappush

from tests.simulation.stopping import PROCESS, Stoppable

RESOLUTION_S = 1e-6
"""Float sums differ in their last digits, which must not make a timer late."""


class Deadlock(Exception):
    """Everything waits, and there is no timer left."""


class _Call(list):
    """[when, number, callback, arguments, context]; a list, since lists are created and compared natively."""

    __slots__ = ()

    def cancel(self):
        self[2] = None

    def cancelled(self):
        return self[2] is None

    def when(self):
        return self[0]


class VirtualLoop(asyncio.AbstractEventLoop):
    """The part of asyncio's loop interface without files, signals, threads and waiting."""

    get_debug = bool
    """Called for every new future; `bool()` returns False without running Python code."""

    def __init__(self):
        self.now = 0.0
        self._ready = deque()
        self._timers = []
        self._calls = 0
        self._closed = False
        self._handler = None
        self.create_future = partial(asyncio.Future, loop=self)

    def time(self):
        return self.now

    # -- callbacks

    def call_soon(self, callback, *args, context=None):
        call = _Call((0.0, 0, callback, args, context or copy_context()))
        self._ready.append(call)
        return call

    call_soon_threadsafe = call_soon

    def call_later(self, delay, callback, *args, context=None):
        self._calls += 1
        call = _Call((self.now + delay, self._calls, callback, args, context or copy_context()))
        if delay < RESOLUTION_S:
            # Time moves on even so. Whoever waits for the last digits would otherwise wait again at the same
            # time, for ever.
            self.now = max(self.now, call[0])
            self._ready.append(call)
        else:
            heappush(self._timers, call)
        return call

    def call_at(self, when, callback, *args, context=None):
        return self.call_later(when - self.now, callback, *args, context=context)

    def _leap(self):
        """Jump to the time of the next timer."""
        timers = self._timers
        while timers and timers[0][2] is None:
            heappop(timers)
        if not timers:
            raise Deadlock("everybody waits for somebody else")
        first = heappop(timers)
        self._ready.append(first)
        if first[0] > self.now:
            self.now = first[0]
        until = self.now + RESOLUTION_S
        while timers and timers[0][0] < until:
            self._ready.append(heappop(timers))

    def create_task(self, coro, *, name=None, context=None):
        process = PROCESS.get() if context is None else context.get(PROCESS)
        if process is not None:
            coro = Stoppable(coro, process)
        return asyncio.Task(coro, loop=self, name=name, context=context)

    # -- life

    def run_until_complete(self, future):
        work, ready = asyncio.ensure_future(future, loop=self), self._ready
        hooks = sys.get_asyncgen_hooks()
        events._set_running_loop(self)
        # The loop closes abandoned generators, like asyncio's own.
        sys.set_asyncgen_hooks(finalizer=lambda left: self.call_soon(self._finish, left))
        try:
            while not work.done():
                if not ready:
                    self._leap()
                _, _, callback, args, context = ready.popleft()
                if callback is not None:
                    try:
                        context.run(callback, *args)
                    except Exception as error:
                        self.call_exception_handler({"exception": error, "message": repr(callback)})
        finally:
            sys.set_asyncgen_hooks(*hooks)
            events._set_running_loop(None)
        return work.result()

    def _finish(self, left):
        self.create_task(left.aclose())

    def is_running(self):
        return events._get_running_loop() is self

    def is_closed(self):
        return self._closed

    def close(self):
        self._closed = True
        self._ready.clear()
        self._timers.clear()

    def set_exception_handler(self, handler):
        self._handler = handler

    def call_exception_handler(self, context):
        if self._handler is not None:
            self._handler(self, context)


@contextmanager
def virtual_loop():
    """A private loop that can be run repeatedly and leaves nothing behind."""
    loop = VirtualLoop()
    try:
        yield loop
    finally:
        _cancel_rest(loop)
        loop.close()


def _cancel_rest(loop):
    rest = asyncio.all_tasks(loop)
    for task in rest:
        task.cancel()
    if rest:
        loop.run_until_complete(asyncio.gather(*rest, return_exceptions=True))


def run(main):
    """Run a coroutine to its end in a loop of its own."""
    with virtual_loop() as loop:
        return loop.run_until_complete(main)


def at_once(coroutine):
    """The result of a coroutine that never really waits."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    coroutine.close()
    raise RuntimeError("it waited")
