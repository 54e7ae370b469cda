"""In the run of a launcher: a process that is forked for each rank, before its main program has begun.

It is a child of the launcher's process and in its session, so the shim finds it and all its descendants. To
start a rank, a client connects and sends a file with what to run, together with the rank's standard output
and error. The answer is the process id, or that the rank must be started cold; later the exit code follows. A
rank is killed when its client disappears, just as `determined.launch` makes the kernel do for other commands.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import select
import signal
import socket
import struct

from worker.shim.command import EnteredCommand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any, NoReturn

ADDRESS = "DET_RANK_SERVER"
"""Variable of the launcher's process and of those that it starts, but of no rank."""
STARTED, REFUSED = b"+", b"-"
PR_SET_PDEATHSIG = 1
CLIENT_TIMEOUT_S = 5.0
FILES = 3
PER_RANK = (
    *(
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "GROUP_RANK",
        "GROUP_WORLD_SIZE",
        "MASTER_ADDR",
    ),
    *("ROLE_RANK", "ROLE_NAME", "ROLE_WORLD_SIZE", "MASTER_PORT", "USE_TORCH_DISTRIBUTED"),
    *("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS"),
    *("TORCHELASTIC_ERROR_FILE", "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_SIGNALS_TO_HANDLE"),
    "TORCH_NCCL_ASYNC_ERROR_HANDLING",
)
"""Variables that torch's launcher sets for ranks. Modules that read one during import are not preloaded."""
_OTHER_PER_RANK = re.compile(r"DET_\w*|TORCHELASTIC_\w*|CUDA_VISIBLE_DEVICES")


class Refusal(Exception):
    """A rank must be started cold."""


def parse_request(
    client_request: Mapping[str, Any], python: str, launcher_env: Mapping[str, str], loaded: Collection[str]
) -> dict[str, Any]:
    """Return the main program of a rank. Raises `Refusal`.

    `python` is the first word of the launcher's own command line, `launcher_env` its environment, and
    `loaded` the names of the modules that ranks would find.
    """
    words = client_request["argv"]
    is_module = words[1:2] == ["-m"]
    main, *arguments = words[1 + is_module :] or [""]
    if (
        words[:1] != [python]
        or main.startswith("-")
        or _shared(client_request["env"]) != _shared(launcher_env)
    ):
        raise Refusal
    if is_module:
        if not main or {main, f"{main}.__main__"} & set(loaded):
            raise Refusal
    elif not _is_script(client_request["cwd"], main) or _names_beside(
        client_request["cwd"], main
    ) & _top_level_names(loaded):
        raise Refusal
    return {"words": words, "main": main, "is_module": is_module, "arguments": arguments}


def _shared(env: Mapping[str, str]) -> dict[str, str]:
    return {
        key: value for key, value in env.items() if key not in PER_RANK and not _OTHER_PER_RANK.fullmatch(key)
    }


def _top_level_names(modules: Collection[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def _is_script(cwd: str, main: str) -> bool:
    plain = main.removeprefix("./")
    is_plain = plain.endswith(".py") and os.path.normpath(plain) == plain
    return is_plain and os.path.isfile(os.path.join(cwd, plain))


def _names_beside(cwd: str, main: str) -> set[str]:
    """Names beside a script, which take precedence over all packages; a folder need not be a package."""
    return _top_level_names(os.listdir(os.path.dirname(os.path.join(cwd, main))))


def serve(become_rank: Callable[[dict[str, Any], int, int], NoReturn]) -> tuple[str, int]:
    """Fork the server. Returns its address and process id. `become_rank` turns a fork of the server into a
    rank.

    `become_rank` raises `Refusal` before it has changed anything, or `EnteredCommand`, which also propagates
    out of this function.
    """
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    # In the abstract namespace: no file is left behind, and no path can be too long.
    address = f"steadfast-ranks-{os.urandom(16).hex()}"
    listening.bind(f"\0{address}")
    listening.listen()
    parent = os.getpid()
    if pid := os.fork():
        listening.close()
        return address, pid
    die_with_parent(parent)
    _close_all_but(listening.fileno())
    try:
        Server(listening, become_rank).run()
    except EnteredCommand:
        # In a rank.
        raise
    except BaseException:
        os._exit(1)


def die_with_parent(parent: int) -> None:
    """Make the kernel kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _close_all_but(kept_descriptor: int) -> None:
    """Close inherited descriptors. The shim waits for the end of one, by which a start is reported."""
    for name in os.listdir("/proc/self/fd"):
        if (fd := int(name)) > 2 and fd != kept_descriptor:
            # The descriptor that listed the others is already closed.
            with contextlib.suppress(OSError):
                os.close(fd)


class Server:
    """Starts ranks until its launcher ends."""

    def __init__(
        self, listening: socket.socket, become_rank: Callable[[dict[str, Any], int, int], NoReturn]
    ) -> None:
        self._listening = listening
        self._become_rank = become_rank
        self._clients: dict[int, tuple[socket.socket, int, int]] = {}
        """Connection, process id and process descriptor, by each of the two descriptors."""
        self._poll = select.poll()
        self._poll.register(listening, select.POLLIN)

    def run(self) -> NoReturn:
        """Serve forever."""
        while True:
            for fd, _ in self._poll.poll():
                if fd == self._listening.fileno():
                    self._accept()
                elif fd in self._clients:
                    self._handle_event(fd)

    def _accept(self) -> None:
        connection, _ = self._listening.accept()
        connection.settimeout(CLIENT_TIMEOUT_S)
        try:
            fds = socket.recv_fds(connection, 16, FILES)[1] if _is_ours(connection) else []
        except OSError:
            fds = []
        if len(fds) == FILES:
            self._start(connection, *fds)
        else:
            connection.close()
        for fd in fds:
            os.close(fd)

    def _start(self, connection: socket.socket, order: int, out: int, err: int) -> None:
        with open(order, "rb", closefd=False) as file:
            request = json.load(file)
        answer_read, answer_write = os.pipe()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            die_with_parent(parent)
            self._run_rank(request, out, err, answer_write)
        os.close(answer_write)
        with open(answer_read, "rb") as answer:
            # A rank closes it when it begins.
            refused = answer.read(1) == REFUSED
        if refused:
            os.waitpid(pid, 0)
            self._send(connection, REFUSED)
            connection.close()
        else:
            self._send(connection, STARTED + str(pid).encode())
            self._watch(connection, pid)

    def _run_rank(self, request: dict[str, Any], out: int, err: int, answer_write: int) -> NoReturn:
        try:
            self._become_rank(request, out, err)
        except Exception:
            # Whatever went wrong, nothing of it has become visible yet.
            os.write(answer_write, REFUSED)
        os._exit(0)

    def _send(self, connection: socket.socket, message: bytes) -> None:
        # If the client is gone, the poll reports it and the rank is killed.
        with contextlib.suppress(OSError):
            connection.send(message)

    def _watch(self, connection: socket.socket, pid: int) -> None:
        watched = os.pidfd_open(pid)
        for fd in (connection.fileno(), watched):
            self._clients[fd] = connection, pid, watched
            self._poll.register(fd, select.POLLIN)

    def _handle_event(self, fd: int) -> None:
        """Handle a client that is gone, or a rank that has ended."""
        connection, pid, watched = self._clients[fd]
        if fd != watched:
            os.kill(pid, signal.SIGKILL)
            self._poll.unregister(fd)
            return
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self._send(connection, str(status).encode())
        for descriptor in (connection.fileno(), watched):
            del self._clients[descriptor]
            # The connection of a client that was gone is already unregistered.
            with contextlib.suppress(KeyError):
                self._poll.unregister(descriptor)
        connection.close()
        os.close(watched)


def _is_ours(connection: socket.socket) -> bool:
    """Whether the process at the other end has the same user."""
    size = struct.calcsize("3i")
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return bool(struct.unpack("3i", peer)[1] == os.getuid())
