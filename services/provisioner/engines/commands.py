"""Runs an engine's commands. If one does not finish in time, the engine counts as unavailable."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Sequence

from services.kit import subprocesses
from services.provisioner.engines.protocol import EngineUnavailable

INHERITED_VARIABLES = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ")
"""Environment variables passed to commands besides `SLURM_*`. Jobs do not get this process's settings."""


class CommandFailed(Exception):
    """A command exited with a status other than 0. The text is its output, or the status."""

    def __init__(self, status: int, output: str) -> None:
        super().__init__(output or f"exit status {status}")
        self.output = output


async def run_command(command: Sequence[str], *, within_s: float, text: str = "", **variables: str) -> str:
    """Return what a command printed. `text` is its input, `variables` its additional environment.

    Raises `CommandFailed`, or `EngineUnavailable` if the command cannot be started or does not finish in
    time.
    """
    inherited = {k: v for k, v in os.environ.items() if k in INHERITED_VARIABLES or k.startswith("SLURM_")}
    pipe = asyncio.subprocess.PIPE
    with tempfile.TemporaryFile() as input:
        # A file and not a pipe: a command that exits without reading its input is no error.
        input.write(text.encode())
        input.seek(0)
        try:
            process = await subprocesses.start(
                *command,
                stdin=input,
                stdout=pipe,
                stderr=pipe,
                env=inherited | variables,
                # A group of its own, which can be killed as a whole when it takes too long.
                start_new_session=True,
            )
        except OSError as error:
            raise EngineUnavailable(f"{command[0]} cannot be run here: {error}") from None
    try:
        async with asyncio.timeout(within_s):
            output, error_output = await process.communicate()
    except TimeoutError:
        raise EngineUnavailable(f"{command[0]} did not answer within {within_s:g} s") from None
    finally:
        if process.returncode is None:
            # With all its children: any that keeps its output open would block us.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode:
        raise CommandFailed(process.returncode, error_output.decode(errors="replace").strip())
    return output.decode(errors="replace")
