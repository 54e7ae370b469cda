"""`det version`: versions of this client and of the master (client spec, section 6)."""

from __future__ import annotations

import argparse

from determined.__version__ import __version__
from determined.cli import output
from determined.cli.grammar import Verb
from determined.common.api import errors
from determined.transport.rest import Session


def show(session: Session, args: argparse.Namespace) -> None:
    """Print both versions. Without a master its fields are empty, which is not an error."""
    session.pauses = ()
    try:
        info = session.get("/info")
    except (errors.BadRequestException, errors.BadResponseException) as error:
        output.warn(str(error))
        info = {}
    fields = ("cluster_id", "master_id", "version")
    output.print_yaml(
        {
            "client": {"version": __version__},
            "master": {field: str(info.get(field, "")) for field in fields},
            "master_address": session.master,
        }
    )


VERB = Verb("version", "show the versions of client and master", show, login=False, check=False)
