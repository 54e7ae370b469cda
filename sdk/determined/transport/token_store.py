"""The user's tokens, kept between commands (client spec, section 1).

File `auth.json`: `{"version": 1, "masters": {"<url>": {"active_user": "u", "tokens": {"u": "t"}}}}`. Writers
take a lock and replace the whole file, so that concurrent commands lose nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from determined._home import home_directory
from determined.common.api.errors import CorruptTokenCacheException

VERSION = 1


def config_dir() -> Path:
    """Return the per-user directory of client files. `DET_DEBUG_CONFIG_PATH` overrides it.

    Raises `NoHomeDirectory`.
    """
    if replaced := os.environ.get("DET_DEBUG_CONFIG_PATH"):
        return Path(replaced)
    if sys.platform == "darwin":
        base = home_directory() / "Library" / "Application Support"
    elif os.name == "nt":
        base = Path(os.environ.get("LOCALAPPDATA") or home_directory() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CONFIG_HOME") or home_directory() / ".config")
    return base / "determined"


def make_private(directory: Path) -> None:
    """Create a directory that only its owner can read."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)


def replace_private(path: Path, text: str) -> None:
    """Write a file atomically, readable only by its owner."""
    make_private(path.parent)
    # Named by process: certificates are written without a lock.
    draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    # Opened with its mode: until a later chmod, others could read the tokens.
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(draft, path)


class TokenStore:
    """The tokens for one master, in a file shared by all masters.

    Every method may raise `CorruptTokenCacheException`; the unreadable file has then been removed.
    """

    def __init__(self, master: str, directory: Path | None = None) -> None:
        self._master = master
        self._path = (directory or config_dir()) / "auth.json"

    def active_user(self) -> str | None:
        """Return the user who last logged in with `det user login`."""
        active: str | None = self._entry(self._read()).get("active_user")
        return active

    def users(self) -> list[str]:
        """Return all users with a token for this master."""
        return sorted(self._entry(self._read()).get("tokens", {}))

    def token(self, user: str) -> str | None:
        """Return the stored token. It may have expired on the master."""
        tokens: dict[str, str] = self._entry(self._read()).get("tokens", {})
        return tokens.get(user)

    def save(self, user: str, token: str, *, activate: bool = False) -> None:
        """Store a token. `activate` makes its user the default without `-u`."""
        with self._changing() as entry:
            entry.setdefault("tokens", {})[user] = token
            if activate:
                entry["active_user"] = user

    def drop(self, user: str, *, deactivate: bool = False) -> None:
        """Remove a token. `deactivate` also stops its user from being the default."""
        with self._changing() as entry:
            entry.get("tokens", {}).pop(user, None)
            if deactivate and entry.get("active_user") == user:
                del entry["active_user"]

    @contextlib.contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        make_private(self._path.parent)
        # A lock file of its own: the file itself is replaced by another one while the lock is held.
        with _locked(self._path.with_name("auth.json.lock")):
            content = self._read()
            yield content["masters"].setdefault(self._master, {})
            replace_private(self._path, json.dumps(content, indent=2))

    def _entry(self, content: dict[str, Any]) -> dict[str, Any]:
        entry: dict[str, Any] = content["masters"].get(self._master, {})
        return entry

    def _read(self) -> dict[str, Any]:
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {"version": VERSION, "masters": {}}
        except ValueError:
            content = None
        content = self._upgraded(content)
        if not _is_sound(content):
            # Removed, or every command would fail until the user finds out which file to delete.
            self._path.unlink(missing_ok=True)
            raise CorruptTokenCacheException()
        return content  # type: ignore[no-any-return]

    def _upgraded(self, content: Any) -> Any:
        """Convert version 0, which held one unnamed master's entry; the current master is assumed."""
        if isinstance(content, dict) and content.get("version", 0) == 0:
            entry = {key: content[key] for key in ("active_user", "tokens") if key in content}
            return {"version": VERSION, "masters": {self._master: entry}}
        return content


def _is_sound(content: Any) -> bool:
    if not isinstance(content, dict) or content.get("version") != VERSION:
        return False
    masters = content.get("masters")
    return isinstance(masters, dict) and all(_is_sound_entry(entry) for entry in masters.values())


def _is_sound_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("active_user", ""), str | None):
        return False
    tokens = entry.get("tokens", {})
    return isinstance(tokens, dict) and all(isinstance(token, str) for token in tokens.values())


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
