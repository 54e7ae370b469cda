"""`det trial support-bundle`: collects everything about a trial in one file, to send to support."""

from __future__ import annotations

import argparse
import io
import json
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

from determined.cli import master
from determined.cli.failure import Failure
from determined.cli.grammar import arg
from determined.transport import log_stream
from determined.transport.rest import Session

ARGS = (
    arg("trial_id", type=int, help="number of the trial"),
    arg(
        "-o",
        "--output-dir",
        type=Path,
        metavar="DIR",
        help="directory for the file; default: current directory",
    ),
)


def bundle(session: Session, args: argparse.Namespace) -> None:
    """Write the archive, whose files are in a directory named after it, and print its path."""
    name = f"det-bundle-trial-{args.trial_id}-{time.strftime('%Y%m%dT%H%M%S')}"
    # All requests before the file is created: one that fails leaves no broken archive.
    parts = list(_parts(session, args.trial_id))
    path = (args.output_dir or Path()).resolve() / f"{name}.tar.gz"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(path, "w:gz") as archive:
            for part, text in parts:
                content = text.encode()
                member = tarfile.TarInfo(f"{name}/{part}")
                member.size, member.mtime = len(content), int(time.time())
                archive.addfile(member, io.BytesIO(content))
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror}") from error
    print(f"bundle path: {path}")


def _parts(session: Session, trial_id: int) -> Iterator[tuple[str, str]]:
    """Yield file names and contents: those of 0.25, and the causal history."""
    trial = session.get(f"/api/v1/trials/{trial_id}")["trial"]
    experiment = session.get(f"/api/v1/experiments/{trial['experimentId']}")
    why = session.get(f"/api/v1/why/trial/{trial_id}", {"verbose": "true"})
    lines = (record["message"] for record in log_stream.read(session, log_stream.trial(trial_id)))
    yield "trial_logs.txt", "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
    yield "master_logs.txt", "".join(f"{line}\n" for line in master.log_lines(session))
    for name, answer in (("api_trial_call", trial), ("api_experiment_call", experiment), ("why", why)):
        yield f"{name}.json", json.dumps(answer, indent=2, sort_keys=True) + "\n"
