"""The event loop of the thread that talks to the cluster."""

import asyncio
import socket
from typing import Any


class ScriptLoop(asyncio.SelectorEventLoop):
    """An event loop that can resolve host names while the interpreter is exiting.

    asyncio resolves names in an executor. Once the main thread has ended, which is before `atexit` functions
    run, an executor accepts no work, and from Python 3.12 on no thread can be started. This loop therefore
    resolves names itself. That blocks the loop, for seconds if no name server answers. But names are resolved
    only while there is no connection, when nothing else in the loop could make progress.
    """

    async def getaddrinfo(
        self, host: Any, port: Any, *, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
    ) -> list[Any]:
        return socket.getaddrinfo(host, port, family, type, proto, flags)
