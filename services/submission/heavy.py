"""Work too heavy for the gateway's process; each function runs in another (`services.kit.offload`)."""

from __future__ import annotations

import mmap
import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from det_contracts.problems import invalid, not_found
from services.catalogue.api_values import format_time
from services.rest_requests.bodies import CreateExperiment, TaskBody
from services.rest_requests.body import Body
from services.submission import archive, configuration
from services.web.bodies import read_body

MAX_SHOWN_BYTES = 8 << 20
KINDS: dict[str, tuple[type[Body], str]] = {
    "experiment": (CreateExperiment, "model_definition"),
    "task": (TaskBody, "files"),
}
"""For each kind of request: the shape of its body, and the field that holds files."""


def read(kind: str, body: int, packed: int) -> dict[str, Any]:
    """Parse a request and pack its files; return the other fields and the identity of the archive."""
    shape, files = KINDS[kind]
    with mmap.mmap(body, 0, access=mmap.ACCESS_READ) as text:
        # Counted as bytes, because a million empty files parse into gigabytes of objects.
        archive.check_file_count(text)
        parsed = read_body(shape, text.read())
    items = getattr(parsed, files)
    answer: dict[str, Any] = {
        "fields": parsed.model_dump(exclude={files}, exclude_unset=True),
        "context": None,
    }
    if items:
        with archive.pack(items) as (context, source), open(packed, "wb", closefd=False) as target:
            shutil.copyfileobj(source, target, 1 << 20)
            answer["context"] = msgspec.to_builtins(context)
    return answer


def complete(arguments: dict[str, Any]) -> dict[str, Any]:
    """Complete a configuration from its template and defaults. Raises `Refused` listing every fault."""
    return configuration.complete_in_process(**arguments)


def merge(config: Any) -> dict[str, Any]:
    """Check a template's configuration and return it."""
    return configuration.check_template_in_process(config)


def task(config: Any) -> None:
    """Check a task's configuration. Raises `Refused` listing every fault."""
    configuration.check_task_in_process(config)


def tree(_: object, packed: int) -> bytes:
    """All files and directories of a context, nested, as JSON."""
    tops: list[dict[str, Any]] = []
    below: dict[str, list[dict[str, Any]]] = {"": tops}
    with _opened(packed) as members:
        for member in sorted(members, key=lambda entry: entry.name):
            parent, _slash, name = member.name.rpartition("/")
            inner: list[dict[str, Any]] = []
            node = {
                "path": member.name,
                "name": name,
                "modifiedTime": format_time(float(member.mtime)),
                "contentLength": member.size,
                "isDir": member.isdir(),
                "contentType": "" if member.isdir() else "text/plain; charset=utf-8",
                "files": inner,
            }
            # An archive may lack the entry of a folder; what is in it is shown at the top then.
            below.setdefault(parent, tops).append(node)
            below[member.name] = inner
    return msgspec.json.encode(tops)


def one_file(path: str, packed: int) -> bytes:
    """The content of one file of a context; raises `Refused`."""
    with _opened(packed) as members:
        for member in members:
            if member.name == path and member.isfile():
                if member.size > MAX_SHOWN_BYTES:
                    raise invalid(f"'{path}' is larger than {MAX_SHOWN_BYTES} bytes: download the whole")
                content = members.extractfile(member)
                if content is not None:
                    return content.read()
    raise not_found("file", path)


@contextmanager
def _opened(packed: int) -> Iterator[tarfile.TarFile]:
    with os.fdopen(os.dup(packed), "rb") as file:
        file.seek(0)
        with tarfile.open(fileobj=file, mode="r:gz") as members:
            yield members
