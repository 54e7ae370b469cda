"""What the file with the pools says of engines."""

import sys

import pytest

from services.kit.settings import BadSettings
from services.provisioner.pools import load_engines
from services.provisioner.settings import Settings, require_pools_file


def engines(tmp_path, text):
    (tmp_path / "pools.yaml").write_text(text)
    settings = Settings(provisioner_home=tmp_path / "home", pools=tmp_path / "pools.yaml")
    return load_engines(settings, require_pools_file(settings))


def test_only_pools_with_a_provider_have_an_engine(tmp_path):
    loaded_engines = engines(
        tmp_path,
        "resource_pools:\n- {pool_name: a}\n- {pool_name: b, provider: {type: process, max_instances: 2}}",
    )
    assert list(loaded_engines) == ["b"]


def test_all_invalid_values_are_reported_at_once(tmp_path):
    text = """
resource_pools:
- {pool_name: a, provider: {type: aws}}
- {pool_name: b, provider: {type: process, process: {comand: [x]}}}
- {pool_name: ../c, provider: {type: process}}
"""
    with pytest.raises(BadSettings) as caught:
        engines(tmp_path, text)
    assert "resource_pools[0].provider: type is 'aws': expected one of " in str(caught.value)
    assert "resource_pools[1].provider: Object contains unknown field `comand`" in str(caught.value)
    assert "resource_pools[2].provider" in str(caught.value)


def test_the_file_must_be_named():
    with pytest.raises(BadSettings, match="STEADFAST_POOLS is not set"):
        require_pools_file(Settings())


def test_only_a_pool_on_kubernetes_needs_its_client(tmp_path, monkeypatch):
    pool = "{pool_name: a, provider: {type: kubernetes, kubernetes: {image: worker}}}"
    assert list(engines(tmp_path, f"resource_pools: [{pool}]")) == ["a"]
    monkeypatch.delitem(sys.modules, "services.provisioner.engines.kubernetes")
    monkeypatch.setitem(sys.modules, "lightkube", None)
    hint = r"resource_pools\[0\].*pip install 'steadfast\[kubernetes\]'"
    with pytest.raises(BadSettings, match=hint):
        engines(tmp_path, f"resource_pools: [{pool}]")
    assert list(engines(tmp_path, "resource_pools: [{pool_name: a, provider: {type: slurm}}]")) == ["a"]
