"""`det deploy kubernetes`, with stand-ins for helm and kubectl that keep what they are given."""

import base64
import json
import os
from pathlib import Path

import pytest
import yaml

from services.local.on_kubernetes import broker_names
from tests.fixtures.kubernetes_schemas import VERSIONS, problem
from tests.fixtures.service_processes import run_module

VALUES = """
initialPassword: correct horse
broker: {count: 3}
database: {existingSecret: postgres}
objectStore: {endpoint: "https://s3.example", existingSecret: s3}
"""


@pytest.fixture
def run(tmp_path):
    """Runs a verb; `programs` are there, and say in the file `words` how they were called."""
    bin = tmp_path / "bin"
    bin.mkdir()

    def verb(*words, programs=()):
        for name in programs:
            keeps = f'case "$*" in *filename=-*) cat > {tmp_path}/given;; esac'
            (bin / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {tmp_path}/words\n{keeps}\n')
            (bin / name).chmod(0o755)
        environment = os.environ | {"PATH": f"{bin}:/usr/bin/none"}
        (bin / "cat").exists() or (bin / "cat").symlink_to("/bin/cat")
        return run_module("determined.cli", "deploy", "kubernetes", *words, env=environment)

    return verb


def secrets(text):
    return {
        manifest["metadata"]["name"]: manifest
        for manifest in yaml.safe_load_all(text)
        if manifest["kind"] == "Secret"
    }


def held(secret):
    return {name: base64.b64decode(text) for name, text in secret["data"].items()}


def test_keys_are_made_once_and_are_secrets_that_the_chart_names(run, tmp_path):
    words = ("keys", "--name", "lab", "--namespace", "ml", "--keys", tmp_path / "keys", "--brokers", "3")
    first = run(*words)
    assert first.returncode == 0, first.stderr
    created = secrets(first.stdout)
    assert [problem(secret, version) for secret in created.values() for version in VERSIONS] == [""] * 9
    assert set(created) == {"lab-broker-keys", "lab-service-keys", "lab-worker-keys"}
    brokers = held(created["lab-broker-keys"])
    for name in broker_names("lab", 3):
        config = json.loads(brokers[f"{name}.conf"])
        assert config["server_name"] == name
        assert config["cluster"]["routes"] == [f"nats://{peer}:6222" for peer in broker_names("lab", 3)]
        assert config["jetstream"]["store_dir"] == "/data"
    assert set(held(created["lab-worker-keys"])) == {
        "worker-signing.json",
        "trial-signing.json",
        "sealing-key",
    }
    assert {"gateway.creds", "provisioner.creds", "token-key"} <= set(held(created["lab-service-keys"]))
    # Who may do anything stays with the administrator.
    assert "operator" not in first.stdout
    again = secrets(run(*words).stdout)
    assert held(again["lab-worker-keys"]) == held(created["lab-worker-keys"])


def test_workers_of_another_namespace_have_their_keys_there(run, tmp_path):
    output = run("keys", "--keys", tmp_path / "keys", "--workers-namespace", "tasks").stdout
    where = {name: secret["metadata"]["namespace"] for name, secret in secrets(output).items()}
    assert where == {
        "steadfast-broker-keys": "steadfast",
        "steadfast-service-keys": "steadfast",
        "steadfast-worker-keys": "tasks",
    }


def test_up_makes_both_namespaces(run, tmp_path):
    both = ("helm", "kubectl")
    run("up", "--keys", tmp_path / "keys", "--workers-namespace", "tasks", programs=both)
    manifests = yaml.safe_load_all((tmp_path / "given").read_text())
    namespaces = [manifest["metadata"]["name"] for manifest in manifests if manifest["kind"] == "Namespace"]
    assert namespaces == ["steadfast", "tasks"]


def test_the_chart_is_rendered_where_there_is_no_helm(run, tmp_path):
    pytest.importorskip("helm_python")
    (tmp_path / "values.yaml").write_text(VALUES)
    (tmp_path / "more.yaml").write_text("broker: {count: 1}\nclusterId: mine\n")
    words = ("--values", tmp_path / "values.yaml", "--values", tmp_path / "more.yaml")
    done = run("render", "--name", "lab", *words)
    assert done.returncode == 0, done.stderr
    manifests = {
        (manifest["kind"], manifest["metadata"]["name"]): manifest
        for manifest in yaml.safe_load_all(done.stdout)
        if manifest
    }
    assert manifests["StatefulSet", "lab-nats"]["spec"]["replicas"] == 1
    assert "mine" in str(manifests["Deployment", "lab-gateway"])
    (tmp_path / "more.yaml").write_text("broker: {count: 2}\n")
    refused = run("render", *words)
    assert refused.returncode == 1
    assert "broker" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_up_makes_keys_first_and_down_leaves_data(run, tmp_path):
    (tmp_path / "values.yaml").write_text(VALUES)
    both = ("helm", "kubectl")
    words = ("--name", "lab", "--namespace", "ml")
    keys = ("--keys", tmp_path / "keys", "--brokers", "3", "--values", tmp_path / "values.yaml")
    done = run("up", *words, *keys, "--wait", programs=both)
    assert done.returncode == 0, done.stderr
    run("down", *words, programs=both)
    run("down", *words, "--delete-data", "--workers-namespace", "tasks", programs=both)
    run("status", *words, programs=both)
    chart = Path(__file__).parents[2] / "deploy" / "helm" / "steadfast"
    workers = "--selector=app.kubernetes.io/part-of=lab,steadfast/part=worker"
    mine = "--selector=app.kubernetes.io/instance=lab"
    removed = "helm uninstall lab --namespace=ml --ignore-not-found"
    assert (tmp_path / "words").read_text().splitlines() == [
        "kubectl apply --server-side --filename=-",
        f"helm upgrade --install lab {chart} --namespace=ml --values={tmp_path}/values.yaml --wait",
        removed,
        f"kubectl delete --ignore-not-found --namespace=ml pods {workers}",
        removed,
        f"kubectl delete --ignore-not-found --namespace=tasks pods {workers}",
        f"kubectl delete --ignore-not-found --namespace=ml persistentvolumeclaims {mine}",
        "kubectl delete --ignore-not-found --namespace=ml secrets "
        "lab-broker-keys lab-service-keys lab-worker-keys",
        f"kubectl get --output=wide --namespace=ml {mine} "
        "deployments,statefulsets,pods,persistentvolumeclaims",
        f"kubectl get --output=wide --namespace=ml {workers} pods",
    ]
    kinds = [manifest["kind"] for manifest in yaml.safe_load_all((tmp_path / "given").read_text())]
    assert kinds == ["Namespace", "Secret", "Secret", "Secret"]


def test_what_is_missing_is_named(run, tmp_path):
    done = run("up", "--keys", tmp_path / "keys", programs=("kubectl",))
    assert done.returncode == 1
    assert "helm not on PATH" in done.stderr
    assert not (tmp_path / "words").exists()
