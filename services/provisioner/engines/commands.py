"""Runs an engine's commands. If one does not finish in time, the engine counts as unavailable."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Sequence

from services.kit import subprocesses
from services.provisioner.engines.protocol import EngineAway

PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ")
"""Environment variables passed to commands besides `SLURM_*`. Jobs do not get this process's settings."""


class Failed(Exception):
    """A command exited with a status other than 0. The text is its output, or the status."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said or f"exit status {status}")
        self.said = said


async def run(command: Sequence[str], *, within_s: float, text: str = "", **more: str) -> str:
    """Return what a command printed. `text` is its input, `more` its additional environment.

    Raises `Failed`, or `EngineAway` if the command cannot be started or does not finish in time.
    """
    own = {k: v for k, v in os.environ.items() if k in PASSED_ON or k.startswith("SLURM_")}
    pipe = asyncio.subprocess.PIPE
    with tempfile.TemporaryFile() as input:
        # A file and not a pipe: a command that exits without reading its input is no error.
        input.write(text.encode())
        input.seek(0)
        try:
            process = await subprocesses.start(
                *command, stdin=input, stdout=pipe, stderr=pipe, env=own | more, start_new_session=True
            )
        except OSError as error:
            raise EngineAway(f"{command[0]} cannot be run here: {error}") from None
    try:
        async with asyncio.timeout(within_s):
            said, complained = await process.communicate()
    except TimeoutError:
        raise EngineAway(f"{command[0]} did not answer within {within_s:g} s") from None
    finally:
        if process.returncode is None:
            # With all its children: any that keeps its output open would block us.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode:
        raise Failed(process.returncode, complained.decode(errors="replace").strip())
    return said.decode(errors="replace")
