"""Local training in a folder of its own."""

import pytest

pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Checkpoints and code of a test are its own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    code = tmp_path / "code"
    code.mkdir()
    monkeypatch.chdir(code)
    return tmp_path
