"""Verification of the master's certificate, under the names that client scripts import."""

from __future__ import annotations

import tempfile
from pathlib import Path


class Cert:
    """How the master's certificate is verified: against the default authorities unless configured.

    `cert_pem` is a certificate chain as text, `name` is the name expected in the master's certificate, and
    `noverify` disables verification.
    """

    def __init__(self, cert_pem: str | None = None, noverify: bool = False, name: str | None = None) -> None:
        self._pem, self._noverify, self._name = cert_pem, noverify, name
        self._file: Path | None = None

    @property
    def bundle(self) -> bool | str | None:
        """The `verify` argument of requests: False, a file path, or None for the defaults."""
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
        """The name expected in the master's certificate."""
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
    """Return the explicit setting, or else the one in `DET_MASTER_CERT_FILE` or the user's certificate file.

    The certificate file is consulted when a session connects, for the master it connects to.
    """
    pem = Path(explicit_path).read_text(encoding="utf-8") if explicit_path else None
    return Cert(pem, explicit_noverify, explicit_cert_name)


cli_cert: Cert | None = None
"""Default certificate setting for all sessions, set once by command-line scripts."""
