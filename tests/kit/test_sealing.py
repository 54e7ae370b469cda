"""Secrets as they lie in the log."""

import pytest

from services.kit.sealing import CannotOpen, Sealer, is_sealed, open_secrets, seal_secrets, sealer_from
from services.kit.settings import BadSettings

CONFIG = {
    "name": "n",
    "checkpoint_storage": {"type": "s3", "bucket": "b", "access_key": "ak-1", "secret_key": "sk-1"},
    "environment": {
        "registry_auth": {"username": "u", "password": "pw-1", "auth": "au-1"},
        "environment_variables": {"cpu": ["A=1", "HF_TOKEN=tok-1", "X_KEY="], "cuda": ["my_password=pw=2"]},
    },
    "tensorboard": {"sources": [{"storage": {"type": "s3", "secret_key": "sk-2"}}]},
    "hyperparameters": {"token": "kept"},
}
SECRETS = ["ak-1", "sk-1", "pw-1", "au-1", "tok-1", "pw=2", "sk-2"]


@pytest.fixture
def sealer():
    return Sealer(b"1" * 32)


def test_nothing_secret_is_left_and_all_of_it_comes_back(sealer):
    lying = seal_secrets(CONFIG, "ann", sealer)
    assert not [secret for secret in SECRETS if secret in str(lying)]
    assert lying["hyperparameters"] == {"token": "kept"}
    assert lying["environment"]["environment_variables"]["cpu"][::2] == ["A=1", "X_KEY="]
    assert open_secrets(lying, "ann", sealer) == CONFIG
    assert lying != seal_secrets(CONFIG, "ann", sealer)


def test_what_is_sealed_is_for_one_owner_and_one_cluster(sealer):
    lying = seal_secrets(CONFIG, "ann", sealer)
    with pytest.raises(
        CannotOpen, match=r"checkpoint_storage\.access_key cannot be opened.*not sealed for bob"
    ):
        open_secrets(lying, "bob", sealer)
    with pytest.raises(CannotOpen, match="STEADFAST_SEALING_KEY"):
        open_secrets(lying, "ann", Sealer(b"2" * 32))
    with pytest.raises(CannotOpen, match="has no STEADFAST_SEALING_KEY"):
        open_secrets(lying, "ann", None)


@pytest.mark.parametrize("text", ["sealed:1:", "sealed:1:AAAA", "sealed:1:ü", "sealed:1:" + "A" * 200])
def test_what_was_never_sealed(sealer, text):
    assert is_sealed(text)
    with pytest.raises(CannotOpen, match="STEADFAST_SEALING_KEY"):
        sealer.open("ann", text)


def test_an_old_log_and_a_cluster_without_a_key_have_them_in_the_clear(sealer):
    assert open_secrets(CONFIG, "ann", sealer) == CONFIG
    assert seal_secrets(CONFIG, "ann", None) == CONFIG
    assert open_secrets(CONFIG, "ann", None) == CONFIG


def test_key_files(tmp_path):
    path = tmp_path / "key"
    assert sealer_from(None) is None
    for text in (None, "", "zz", "ab" * 31, "ab" * 32 + "\n" + "cd" * 31):
        if text is not None:
            path.write_text(text)
        with pytest.raises(BadSettings, match="STEADFAST_SEALING_KEY"):
            sealer_from(path)
    path.write_text("ab" * 32 + "\n")
    text = sealer_from(path).seal("ann", "x")
    assert sealer_from(path).open("ann", text) == "x"


def test_a_new_key_before_the_old_one_seals_and_both_open(tmp_path):
    path = tmp_path / "key"
    path.write_text("ab" * 32)
    old = sealer_from(path)
    path.write_text("cd" * 32 + "\n" + "ab" * 32 + "\n")
    both = sealer_from(path)
    assert both.open("ann", old.seal("ann", "x")) == "x"
    path.write_text("cd" * 32)
    new = sealer_from(path)
    assert new.open("ann", both.seal("ann", "y")) == "y"
    with pytest.raises(CannotOpen, match="STEADFAST_SEALING_KEY"):
        new.open("ann", old.seal("ann", "x"))
