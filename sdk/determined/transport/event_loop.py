"""The event loop of the thread that talks to the cluster."""

import asyncio
import socket
from typing import Any


class ScriptLoop(asyncio.SelectorEventLoop):
    """An event loop that can connect to a broker with a host name while the interpreter is ending.

    asyncio has names looked up by an executor. From the moment when the main thread has ended, before
    functions of `atexit` are called, an executor takes no work and, from Python 3.12 on, no thread can be
    started. So this loop looks names up itself. It stands still meanwhile, for seconds where no name server
    answers: names are looked up only while there is no connection, when nothing else in it could go on.
    """

    async def getaddrinfo(
        self, host: Any, port: Any, *, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
    ) -> list[Any]:
        return socket.getaddrinfo(host, port, family, type, proto, flags)
