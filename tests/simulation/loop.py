"""An event loop whose time is a number: when nothing is ready, it is the time of the next timer."""

import asyncio
from contextlib import contextmanager


class Deadlock(Exception):
    """Everybody waits, and no timer will wake anybody."""


class _Leap:
    """Stands where the selector would: waiting is adding."""

    def __init__(self, loop):
        self._loop = loop

    def select(self, timeout):
        if timeout is None:
            raise Deadlock("everybody waits for somebody else")
        self._loop.now += timeout
        return ()

    def close(self):
        pass


class VirtualLoop(asyncio.BaseEventLoop):
    """asyncio as it is, without files, signals, threads and waiting."""

    def __init__(self):
        super().__init__()
        self.now = 0.0
        self._selector = _Leap(self)
        # Sums of floats differ in their last digits; a timer must not be missed for that.
        self._clock_resolution = 1e-6

    def time(self):
        return self.now

    def _process_events(self, events):
        pass

    def _write_to_self(self):
        pass


@contextmanager
def virtual_loop():
    """A loop of one's own that is run as often as one likes, and leaves nothing behind."""
    loop = VirtualLoop()
    loop.set_exception_handler(lambda loop, context: None)
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
