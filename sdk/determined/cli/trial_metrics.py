"""`det trial metrics`: exports everything a trial reported as a table (our addition)."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO
from urllib.parse import urlencode

from determined.cli.failure import Failure
from determined.cli.grammar import arg
from determined.transport.rest import Session

FORMATS = ("csv", "parquet")
ARGS = (
    arg("--group", metavar="NAME", help="training, validation or a group of your own; default: all"),
    arg("--format", choices=FORMATS, help="default: by file extension, else csv"),
    arg("-o", "--output", type=Path, metavar="FILE", help="default: standard output"),
)


def show_metrics(session: Session, args: argparse.Namespace) -> None:
    """Write the table. An output file appears only once it is complete."""
    form = args.format or _form_of(args.output)
    if form == "parquet" and args.output is None and sys.stdout.isatty():
        raise Failure("Parquet cannot be displayed on a terminal; name a file with -o FILE.parquet")
    params = {"format": form} | ({"group": args.group} if args.group else {})
    path = f"/api/v1/trials/{args.trial_id}/metrics/export?{urlencode(params)}"
    with session.open(path, "*/*") as source, _target(args.output) as target:
        shutil.copyfileobj(source, target)


def _form_of(path: Path | None) -> str:
    return "parquet" if path is not None and path.suffix == ".parquet" else "csv"


@contextlib.contextmanager
def _target(path: Path | None) -> Iterator[IO[bytes]]:
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    unfinished = path.with_name(path.name + ".part")
    try:
        with unfinished.open("wb") as file:
            yield file
        os.replace(unfinished, path)
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)
