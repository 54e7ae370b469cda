"""How a worker starts the commands of tasks: as processes of its host, or in containers (decision 54).

The shim is the same for all. For a container its command is the command line of an engine, which stays in the
foreground: what the container prints and how it ends passes through it, and a worker that was killed finds
the shim again. So an engine here is what it takes to write command lines.
"""

from worker.launchers.apptainer import Apptainer
from worker.launchers.engine import Container, Engine, Mount, Refused, cli_environment
from worker.launchers.oci import Docker, Podman

PROCESS = "process"
ENGINES: dict[str, Engine] = {engine.name: engine for engine in (Docker(), Podman(), Apptainer())}

__all__ = [
    "ENGINES",
    "PROCESS",
    "BadLauncher",
    "Container",
    "Engine",
    "Mount",
    "Refused",
    "cli_environment",
    "engine_named",
]


class BadLauncher(ValueError):
    """There is no launcher of that name; the text lists those that there are."""


def engine_named(name: str) -> Engine | None:
    """The engine of a setting; None for plain processes. Raises `BadLauncher`.

    Example: `engine_named("podman").command(container)`.
    """
    if name == PROCESS:
        return None
    try:
        return ENGINES[name]
    except KeyError:
        names = ", ".join((PROCESS, *ENGINES))
        raise BadLauncher(f"STEADFAST_WORKER_LAUNCHER={name}: expected one of {names}") from None
