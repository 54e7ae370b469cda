"""`det dev`: the token of the current user, and REST calls by hand (client spec, section 6)."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess

from determined.cli.failure import Failure
from determined.cli.grammar import Noun, Verb, arg
from determined.cli.unsupported import missing
from determined.transport import certificates
from determined.transport.rest import Session

_SHOWN_HEADER = "Authorization: Bearer $(det dev auth-token)"


def print_token(session: Session, args: argparse.Namespace) -> None:
    """Print the token of the current user, and nothing else, for use in other commands."""
    print(session.token)


def call_by_curl(session: Session, args: argparse.Namespace) -> int:
    """Run curl for a path of the master, as the current user. Returns curl's status."""
    program = shutil.which("curl")
    if program is None:
        raise Failure("there is no program 'curl' on this machine; install it, or use `det dev auth-token`")
    path = args.path if args.path.startswith("/") else f"/{args.path}"
    options = [*_trust(session), "-s", *args.curl_args]
    if args.x:
        shown = shlex.join([f"{session.master}{path}", *options])
        print(f'curl -H "{_SHOWN_HEADER}" {shown}', flush=True)
    # Through a pipe: other users of the machine can read command lines.
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as pipe:
        pipe.write(f"Authorization: Bearer {session.token}\n")
    try:
        command = [program, f"{session.master}{path}", "-H", f"@/dev/fd/{reader}", *options]
        status = subprocess.run(command, pass_fds=[reader], check=False).returncode  # noqa: S603
    finally:
        os.close(reader)
    print()
    return status


def _trust(session: Session) -> list[str]:
    """Return the options by which curl trusts the master as this session does."""
    verify = certificates.verification(session.master)
    if verify is False:
        return ["--insecure"]
    return ["--cacert", verify] if isinstance(verify, str) else []


NOUN = Noun(
    "dev",
    "call the REST API by hand",
    (
        Verb("auth-token", "print the token of the current user", print_token),
        Verb(
            "curl",
            "call the REST API with curl",
            call_by_curl,
            (
                arg("-x", action="store_true", help="also print the command"),
                arg("path", help="such as /api/v1/experiments?limit=3"),
                arg("curl_args", nargs=argparse.REMAINDER, help="further arguments of curl"),
            ),
        ),
        missing("dev", "bindings b", "call a generated function of the client"),
    ),
)
