"""The reference of settings: what every process reads from its environment."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import typing
from pathlib import Path
from typing import Any

from services.archive.settings import Settings as ArchiveSettings
from services.kit.allowed_paths import ReachSettings
from services.kit.settings import PREFIX, ServiceSettings
from services.metrics.settings import MetricsSettings
from services.people.oidc.settings import OidcSettings
from services.provisioner.settings import Settings as ProvisionerSettings
from services.rest_requests.settings import Settings as GatewaySettings
from services.scheduler.app import Settings as SchedulerSettings
from services.webhooks.settings import Settings as WebhooksSettings
from worker.settings import WorkerSettings

INTRODUCTION = """# Settings

Every process reads its settings from environment variables, and at its start names all that make no sense.
A local cluster (`det deploy local`) sets them by itself; for others see [several hosts](../growing.md).
"""
SECTIONS: tuple[tuple[str, str, type, type], ...] = (
    ("Every process", "Searcher, checkpoints and intake have no others.", ServiceSettings, object),
    ("Storage that may be reached", "Gateway and workers.", ReachSettings, ServiceSettings),
    ("Gateway", "", GatewaySettings, OidcSettings),
    (
        "Single sign-on",
        "Gateway. [Sign in](../guides/signing-in.md) explains them.",
        OidcSettings,
        ReachSettings,
    ),
    ("Scheduler", "", SchedulerSettings, ServiceSettings),
    ("Metrics", "", MetricsSettings, ServiceSettings),
    (
        "Webhooks",
        "[Notifications](../how-to/webhooks.md) when experiments end.",
        WebhooksSettings,
        ServiceSettings,
    ),
    ("Archive", "", ArchiveSettings, ServiceSettings),
    ("Provisioner", "", ProvisionerSettings, ServiceSettings),
    ("Worker", "", WorkerSettings, ReachSettings),
)
KINDS = {str: "text", int: "integer", float: "number", bool: "true or false", Path: "path"}


def page() -> str:
    """The whole reference as Markdown."""
    lines = [INTRODUCTION]
    for title, about, record, base in SECTIONS:
        lines += [f"## {title}\n", *([f"{about}\n"] if about else [])]
        lines += ["| variable | kind | default | meaning |", "|---|---|---|---|"]
        lines += [_row(record, field) for field in own_fields(record, base)]
        lines.append("")
    return "\n".join(lines)


def own_fields(record: type, base: type) -> list[dataclasses.Field[Any]]:
    """The fields that a record has and its base has not."""
    below = {field.name for field in dataclasses.fields(base)} if dataclasses.is_dataclass(base) else set()
    return [field for field in dataclasses.fields(record) if field.name not in below]


def meaning(record: type, name: str) -> str:
    """The text below a field; empty if it has none."""
    for owner in record.__mro__:
        if name in inspect.get_annotations(owner):
            return _texts(owner).get(name, "")
    return ""


def _texts(record: type) -> dict[str, str]:
    (tree,) = ast.parse(inspect.getsource(record)).body
    texts, last = {}, ""
    for node in getattr(tree, "body", []):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            last = node.target.id
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and last:
            texts[last] = " ".join(str(node.value.value).split())
    return texts


def _row(record: type, field: dataclasses.Field[Any]) -> str:
    hint = typing.get_type_hints(record)[field.name]
    kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)] or [hint]
    text = meaning(record, field.name).replace("|", "\\|")
    return f"| `{PREFIX}{field.name.upper()}` | {KINDS[kinds[0]]} | {_default(field)} | {text} |"


def _default(field: dataclasses.Field[Any]) -> str:
    if field.name == "worker_python":
        return "this Python"
    if field.default in (None, ""):
        return ""
    if field.default is dataclasses.MISSING:
        return "required"
    return f"`{str(field.default).lower() if isinstance(field.default, bool) else field.default}`"
