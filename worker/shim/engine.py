"""Ends what a command left with a container engine, whose daemon runs it outside our process tree."""

from __future__ import annotations

import subprocess
import time

ATTEMPT_TIMEOUT_S = 10.0
RETRY_S = 0.5
GONE_MESSAGES = ("no such container", "no container with")
"""Messages of engines about a container that has ended by itself and was removed: nothing is left to do."""


def end_container(argv: list[str], env: dict[str, str], patience_s: float = 60.0) -> str:
    """End and remove a container in any state. Blocks. Returns the error, or "" on success.

    An engine that does not answer is retried for `patience_s` seconds.
    """
    deadline = time.monotonic() + patience_s
    while True:
        answer = _run(argv, env)
        if not answer or any(word in answer.lower() for word in GONE_MESSAGES):
            return ""
        if time.monotonic() > deadline:
            return f"the container may still run: {answer[-200:]}"
        time.sleep(RETRY_S)


def _run(argv: list[str], env: dict[str, str]) -> str:
    """Run a command of the engine. Returns its error output, or "" on success."""
    try:
        done = subprocess.run(
            argv,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ATTEMPT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if not done.returncode:
        return ""
    return done.stderr.decode("utf-8", "replace").strip() or f"exit code {done.returncode}"
