"""Fetches the image of a run before it starts, so that a failure to fetch is not a failure of its command."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import shutil
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from services.kit import subprocesses
from services.kit.files import write_atomic
from worker.launchers.containers import IMAGE_FILE, Image
from worker.launchers.engine import Engine, Registry, cli_environment

CREDENTIALS = "registry"
DOCKER_HUB = "https://index.docker.io/v1/"
MAX_ERROR_LENGTH = 500


class CannotFetch(Exception):
    """An image is not present and cannot be fetched; the text is for the user."""


async def fetch(engine: Engine, run_dir: Path, report_progress: Callable[[str], Awaitable[None]]) -> None:
    """Make sure that the image of a run is on this host. May be cancelled and repeated.

    `report_progress` tells the user that fetching takes a while. Raises `CannotFetch`.
    """
    try:
        image = msgspec.json.decode((run_dir / IMAGE_FILE).read_bytes(), type=Image)
    except (FileNotFoundError, msgspec.DecodeError):
        return
    if not image.force_pull and not (await _run(engine.inspect_command(image.name)))[0]:
        return
    await report_progress(f"pulling image {image.name}")
    folder = run_dir / CREDENTIALS
    try:
        credentials = _write(folder, image) if image.registry is not None else None
        code, error_output = await _run(engine.pull_command(image.name, credentials))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if code:
        raise CannotFetch(f"the image {image.name} cannot be pulled by {engine.name}: {error_output}")


async def _run(command: Sequence[str]) -> tuple[int, str]:
    """Exit code, and the end of the error output if it failed."""
    try:
        process = await subprocesses.start(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=cli_environment(os.environ),
        )
    except OSError as error:
        return 127, f"{command[0]} cannot be started: {error.strerror}"
    try:
        _, output = await process.communicate()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        raise
    return process.returncode or 0, output.decode(errors="replace").strip()[-MAX_ERROR_LENGTH:]


def _write(folder: Path, image: Image) -> Path:
    """Write a `config.json` with the credentials, which only the engine reads, and only while it pulls."""
    folder.mkdir(mode=0o700, exist_ok=True)
    content = {"auths": {server_of(image): auth_entry(image.registry or Registry())}}
    write_atomic(folder / "config.json", msgspec.json.encode(content), durable=False)
    return folder


def server_of(image: Image) -> str:
    """The registry that credentials are for: the named one, else the image's own.

    Example: for `registry.lan:5000/team/train:3` it is `registry.lan:5000`.
    """
    if image.registry is not None and image.registry.serveraddress:
        return image.registry.serveraddress
    first, slash, _ = image.name.partition("/")
    named = slash and ("." in first or ":" in first or first == "localhost")
    return first if named else DOCKER_HUB


def auth_entry(registry: Registry) -> dict[str, str]:
    """Credentials in the format of the engines' configuration files."""
    pair = f"{registry.username}:{registry.password}".encode()
    auth = registry.auth or (base64.b64encode(pair).decode() if registry.username else "")
    fields = {"auth": auth, "identitytoken": registry.identitytoken, "registrytoken": registry.registrytoken}
    return {name: value for name, value in fields.items() if value}
