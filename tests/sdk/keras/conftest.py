"""Local training in a folder of its own, with the backend torch."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
keras = pytest.importorskip("keras", reason="keras is not installed")

# Models this small gain nothing from a second thread, whose waiting takes a whole core.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Checkpoints and code of a test are its own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    code = tmp_path / "code"
    code.mkdir()
    monkeypatch.chdir(code)
    return tmp_path
