"""Opens the session of a command: master address, availability, user (client spec, sections 1 and 3)."""

from __future__ import annotations

import contextlib
import getpass
import sys
from collections.abc import Iterator

from determined.__version__ import __version__
from determined.cli import output
from determined.cli.failure import Failure
from determined.cli.grammar import Verb
from determined.common.api import errors
from determined.transport import certificates, identity
from determined.transport.address import master_url
from determined.transport.rest import Session, default_pauses

_PAUSES_WITHOUT_MASTER = 2


@contextlib.contextmanager
def open_session(verb: Verb, master: str | None, user: str | None, offline: bool) -> Iterator[Session]:
    """Open a session as the verb needs it, without any request if `offline`.

    `session.user` is the requested user, or the one signed in.
    """
    try:
        session = Session(master_url(master))
    except ValueError as error:
        raise Failure(str(error)) from error
    with session:
        if verb.check and not offline:
            _look_for_master(session)
        if verb.login and not offline:
            identity.sign_in(session, user, ask=ask_password)
        else:
            session.user = user
        yield session


def ask_password(user: str) -> str:
    """Read the password, typed without echo or piped to stdin."""
    return ask_secret(f"Password for user '{user}': ", "run 'det user login', or set DET_USER and DET_PASS")


def ask_secret(prompt: str, advice: str) -> str:
    """Read a line without echo. Raises `Failure` with `advice` if there is no input."""
    try:
        return getpass.getpass(prompt) if sys.stdin.isatty() else _piped(prompt)
    except EOFError:
        print(file=sys.stderr)
        raise Failure(f"no password was entered; {advice}") from None


def _piped(prompt: str) -> str:
    print(prompt, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")


def _look_for_master(session: Session) -> None:
    """Contact the master once. Whatever the answer, the command continues."""
    # Without retries, so that the hint comes at once.
    probe = Session(session.master, pauses=())
    with probe:
        try:
            version = str(probe.get("/info").get("version", ""))
        except errors.UntrustedCertificate:
            # Without the user's consent no request with a password or token is sent there.
            _offer_trust(session.master)
        except errors.MasterNotFoundException:
            _hint(session.master)
            # Wait for a restarting master, but do not spend a quarter of a minute on a wrong address.
            session.pauses = default_pauses()[:_PAUSES_WITHOUT_MASTER]
        except (errors.BadRequestException, errors.BadResponseException) as error:
            output.warn(f"{session.master} answers, but not like a master: {error}")
        else:
            _compare(version)


def _hint(master: str) -> None:
    output.warn(
        f"No master answers at {master}. If yours is elsewhere, name it with DET_MASTER or "
        "'det -m HOST:PORT'; to start one here: 'det deploy local cluster-up'."
    )


def _compare(version: str) -> None:
    master_release, ours = _release(version), _release(__version__)
    if master_release == ours:
        return
    age = "older" if ours < master_release else "newer"
    output.warn(
        f"This det ({__version__}) is {age} than the master ({version}); they may misunderstand each other."
    )


def _release(version: str) -> tuple[int, ...]:
    """Return the numbers before any suffix: `0.25.0+ours` and `0.25.0` are the same release."""
    numbers = version.split("+")[0].split("-")[0].split(".")
    return tuple(int(number) for number in numbers if number.isdigit())


def _offer_trust(master: str) -> None:
    try:
        pem, fingerprint = certificates.presented(master)
    except OSError as error:
        raise Failure(f"cannot read the certificate of {master}: {error}") from error
    output.warn(
        f"The certificate of {master} is not signed by an authority that this machine trusts. "
        "Its SHA-256 fingerprint:\n"
        f"{fingerprint}"
    )
    instead = "set DET_MASTER_CERT_FILE to a file with the certificate"
    if not output.confirm("Trust it from now on?", instead):
        raise Failure(f"the certificate of {master} is not trusted")
    certificates.trust(master, pem)
