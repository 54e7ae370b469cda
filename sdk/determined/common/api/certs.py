"""Which certificate a master may show, under the names that client scripts import."""

from __future__ import annotations

import tempfile
from pathlib import Path


class Cert:
    """What the master's certificate is checked against: the usual authorities unless something is given.

    `cert_pem` is a chain of certificates as text, `name` the name to find in the master's, and with
    `noverify` nothing is checked.
    """

    def __init__(self, cert_pem: str | None = None, noverify: bool = False, name: str | None = None) -> None:
        self._pem, self._noverify, self._name = cert_pem, noverify, name
        self._file: Path | None = None

    @property
    def bundle(self) -> bool | str | None:
        """As `verify` of requests: False, the path of a file, or None for what this person trusts."""
        if self._noverify:
            return False
        if self._pem is None:
            return None
        if self._file is None:
            with tempfile.NamedTemporaryFile("w", suffix=".pem", delete=False) as file:
                file.write(self._pem)
            self._file = Path(file.name)
        return str(self._file)

    @property
    def name(self) -> str | None:
        """The name to find in the master's certificate."""
        return self._name

    def __del__(self) -> None:
        if self._file is not None:
            self._file.unlink(missing_ok=True)


def default_load(
    master_url: str,
    explicit_path: str | None = None,
    explicit_cert_name: str | None = None,
    explicit_noverify: bool = False,
) -> Cert:
    """What is explicitly given, else what `DET_MASTER_CERT_FILE` or this person's file of certificates says.

    The latter is looked up when a session connects, for the master it connects to.
    """
    pem = Path(explicit_path).read_text(encoding="utf-8") if explicit_path else None
    return Cert(pem, explicit_noverify, explicit_cert_name)


cli_cert: Cert | None = None
"""What a script of the command line sets once for all its sessions."""
