"""The Helm chart, rendered by Helm itself, against the schemas of Kubernetes and the programs it starts."""

import importlib
import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from services.archive.settings import Settings as ArchiveSettings
from services.kit.settings import ServiceSettings, load
from services.provisioner.pools import load_engines
from services.provisioner.settings import Settings as ProvisionerSettings
from services.scheduler.pools import read_pools
from tests.fixtures.compose import read_file
from tests.fixtures.kubernetes_schemas import VERSIONS, problem
from worker.settings import WorkerSettings

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "steadfast"
KEYS = {"accessKey": "a", "secretKey": "s"}
SMALL = {
    "initialPassword": "correct horse",
    "database": {"bundled": {"enabled": True, "password": "p@ss word"}},
    "objectStore": {"bundled": {"enabled": True}, **KEYS},
}
LARGE = {
    "initialPasswordSecret": "first",
    "database": {"existingSecret": "postgres"},
    "objectStore": {
        "endpoint": "https://s3.example", "existingSecret": "s3", "cidrs": ["10.0.0.0/8", "0.0.0.0/0"]
    },
    "metricsShards": 2,
    "broker": {"count": 3, "storage": {"size": "1Ti", "className": "fast"}},
    "services": {name: {"replicas": 2} for name in ("intake", "searcher", "scheduler", "gateway")},
    "ingress": {
        "enabled": True, "className": "nginx", "host": "lab.example", "tlsSecret": "tls",
        "annotations": {"a": "b"},
    },
    "image": {"repository": "registry.example/steadfast", "tag": "1", "pullSecrets": ["registry"]},
    "networkPolicies": {
        "gatewayFrom": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress"}}}],
        "metricsFrom": [{"podSelector": {"matchLabels": {"app": "prometheus"}}}],
        "workersTo": [{"to": [{"ipBlock": {"cidr": "10.9.0.0/16"}}], "ports": [{"port": 443}]}],
    },
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "control-plane", "operator": "Exists"}],
    "priorityClassName": "high",
    "podAnnotations": {"c": "d"},
    "environment": {"STEADFAST_LOG_KEEP_DAYS": 90},
    "workers": {"namespace": "tasks", "gpus": 2, "more": {"grace_s": 60, "run_tasks_as": ""}},
    "pools": [
        {"pool_name": "default"},
        {
            "pool_name": "gpu",
            "provider": {
                "type": "kubernetes", "max_instances": 4, "kubernetes": {"environment": {"STEADFAST_X": "y"}}
            },
        },
    ],
}  # fmt: skip
OUTSIDE = SMALL | {"broker": {"count": 0, "externalUrls": ["nats://a:4222", "nats://b:4222"]}, "pools": []}
CASES = {"small": SMALL, "large": LARGE, "outside": OUTSIDE}


def helm():
    """Helm's engine, imported here: it starts threads, and processes of tests are forked after collection."""
    return pytest.importorskip("helm_python", reason="its wheel is there for Linux on x86-64 only")


def render(values, name="lab", namespace="ml"):
    with helm().Chart.load(str(CHART)) as chart:
        files = chart.render(values, name=name, namespace=namespace)
    texts = (text for path, text in sorted(files.items()) if path.endswith(".yaml"))
    return [document for text in texts for document in yaml.safe_load_all(text) if document]


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return render(CASES[request.param])


@pytest.fixture(scope="module")
def large():
    return render(LARGE)


@pytest.fixture(scope="module")
def small():
    return render(SMALL)


def of(objects, kind, name):
    return next(
        resource for resource in objects if resource["kind"] == kind and resource["metadata"]["name"] == name
    )


def names(objects, kind):
    return {resource["metadata"]["name"] for resource in objects if resource["kind"] == kind}


def pods(objects):
    for resource in objects:
        if resource["kind"] in ("Deployment", "StatefulSet", "Job"):
            yield resource["metadata"]["name"], resource["spec"]["template"]


def variables_of(container):
    """Variables with the values that they will have; of a Secret only that there is one."""
    return {
        variable["name"]: variable.get("value", "postgresql://x/y") for variable in container.get("env", [])
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_of_kubernetes_takes_it(case, version):
    wrong = {
        (resource["kind"], resource["metadata"]["name"]): problem(resource, version) for resource in case
    }
    assert {where: text for where, text in wrong.items() if text} == {}


def test_helm_finds_nothing_wrong_with_the_chart():
    report = helm().lint(str(CHART), SMALL)
    assert [message for message in report["messages"] if message["severity"] > 1] == report["errors"] == []


def test_no_name_is_given_twice(case):
    identities = [
        (resource["kind"], resource["metadata"].get("namespace"), resource["metadata"]["name"])
        for resource in case
    ]
    assert len(identities) == len(set(identities))


def settings_of(name):
    settings_by_name = {
        "provisioner": ProvisionerSettings,
        "archive": ArchiveSettings,
        "intake": ServiceSettings,
    }
    return settings_by_name.get(name) or importlib.import_module(f"services.{name}.app").SERVICE.settings


def test_services_get_every_setting_they_know(large):
    for _, pod in pods(large):
        (container,) = pod["spec"]["containers"]
        name = pod["metadata"]["labels"]["app.kubernetes.io/component"]
        if pod["metadata"]["labels"].get("steadfast/part") == "service":
            name, _, shard = name.partition("-")
            assert container["command"] == ["python", "-m", f"services.{name}"]
            variables = variables_of(container) | {
                "STEADFAST_S3_ACCESS_KEY": "a",
                "STEADFAST_S3_SECRET_KEY": "b",
            }
            settings = load(settings_of(name), variables)
            assert (
                settings.nats_url
                == "nats://lab-nats-0.lab-nats:4222,nats://lab-nats-1.lab-nats:4222,nats://lab-nats-2.lab-nats:4222"
            )
            assert settings.stream_replicas == 3
            if name == "metrics":
                assert (settings.metrics_shard, settings.metrics_shards) == (int(shard or 1), 2)
                assert settings.metrics_store == settings.archive.replace("archive", "metrics") != ""


def test_a_service_has_its_own_credentials_and_no_others(large):
    for _, pod in pods(large):
        labels = pod["metadata"]["labels"]
        if labels.get("steadfast/part") == "service":
            (keys,) = [volume for volume in pod["spec"]["volumes"] if volume["name"] == "keys"]
            held = {item["key"] for item in keys["secret"]["items"]}
            name = labels["app.kubernetes.io/component"]
            more = {"gateway": {"token-key", "task-key", "sealing-key"}, "scheduler": {"task-key"}}
            assert held == {f"{name}.creds"} | more.get(name, set())


def test_nothing_of_it_is_root_or_can_write_into_its_image(case):
    for _, pod in pods(case):
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        assert pod["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["spec"]["containers"]:
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"] is True
            assert security["allowPrivilegeEscalation"] is False
            assert security["capabilities"] == {"drop": ["ALL"]}


def test_only_the_provisioner_may_ask_the_api_server_and_only_for_pods(case):
    for name, pod in pods(case):
        asks = pod["spec"].get("automountServiceAccountToken", True)
        assert asks == (name == "lab-provisioner")
    for role in (resource for resource in case if resource["kind"] == "Role"):
        assert role["rules"] == [
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "list", "watch", "delete"]}
        ]
    assert not names(case, "ClusterRole")


@pytest.fixture
def engine(large, tmp_path):
    (tmp_path / "pools.yaml").write_text(of(large, "ConfigMap", "lab-pools")["data"]["pools.yaml"])
    assert [*read_pools(tmp_path / "pools.yaml").pools] == ["default", "gpu"]
    settings = ProvisionerSettings(pools=tmp_path / "pools.yaml", cluster_id="steadfast")
    return load_engines(settings, tmp_path / "pools.yaml")["gpu"]


def test_pools_of_the_chart_are_workers_that_reach_it(engine):
    pod = engine.pod("gpu-1")
    assert problem(pod) == ""
    assert pod["metadata"]["namespace"] == "tasks"
    (container,) = pod["spec"]["containers"]
    variables = {name: value for name, value in variables_of(container).items() if name != "STEADFAST_X"}
    settings = load(WorkerSettings, variables)
    assert settings.master_url == "http://lab-gateway:8080"
    assert settings.blobs == "s3://steadfast/blobs"
    assert container["image"] == "registry.example/steadfast:1"
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    assert pod["spec"]["terminationGracePeriodSeconds"] == 60
    assert container["envFrom"] == [{"secretRef": {"name": "s3"}}]
    assert variables_of(container)["STEADFAST_X"] == "y"


def matches(selector, labels):
    return selector.get("matchLabels", {}).items() <= labels.items()


def may(objects, policy, direction, pod_labels, namespace, port):
    """Whether a policy lets a pod with these labels, in that namespace, come in or be reached at a port."""
    for rule in of(objects, "NetworkPolicy", policy)["spec"][direction]:
        ports = {entry["port"] for entry in rule.get("ports", [{"port": port}])}
        for peer in rule.get("from" if direction == "ingress" else "to", [{}]):
            there = {"kubernetes.io/metadata.name": namespace}
            own = of(objects, "NetworkPolicy", policy)["metadata"].get("namespace", "ml")
            same = (
                matches(peer["namespaceSelector"], there) if "namespaceSelector" in peer else own == namespace
            )
            if (
                port in ports
                and "ipBlock" not in peer
                and same
                and matches(peer.get("podSelector", {}), pod_labels)
            ):
                return True
    return False


def test_scripts_reach_the_broker_the_gateway_and_one_another_and_nothing_else(small, tmp_path):
    (tmp_path / "pools.yaml").write_text(of(small, "ConfigMap", "lab-pools")["data"]["pools.yaml"])
    engine = load_engines(ProvisionerSettings(cluster_id="steadfast"), tmp_path / "pools.yaml")["default"]
    worker = engine.pod("default-1")["metadata"]["labels"]
    assert matches(of(small, "NetworkPolicy", "lab-workers")["spec"]["podSelector"], worker)
    labels = {name: pod["metadata"]["labels"] for name, pod in pods(small)}
    reached = {
        (name, port)
        for name in labels
        for port in (4222, 6222, 5432, 8080, 9000, 9100)
        if may(small, "lab-workers", "egress", labels[name], "ml", port)
    }
    assert reached == {("lab-gateway", 8080), ("lab-nats", 4222), ("lab-minio", 9000)}
    assert may(small, "lab-workers", "egress", worker, "ml", 29500)
    for name, port in reached:
        assert may(small, name, "ingress", worker, "ml", port)
    assert not may(small, "lab-postgres", "ingress", worker, "ml", 5432)
    assert not may(small, "lab-nats", "ingress", worker, "ml", 6222)
    for name, port in (("lab-nats", 4222), ("lab-postgres", 5432), ("lab-minio", 9000)):
        assert not may(small, name, "ingress", {"app": "of others"}, "elsewhere", port)
        assert not may(small, name, "ingress", {"app": "of others"}, "ml", port)
    assert may(small, "lab-postgres", "ingress", labels["lab-searcher"], "ml", 5432)
    assert may(small, "lab-nats", "ingress", labels["lab-searcher"], "ml", 4222)
    assert may(small, "lab-workers", "ingress", labels["lab-gateway"], "ml", 8888)
    assert not may(small, "lab-workers", "ingress", labels["lab-searcher"], "ml", 8888)


def test_workers_of_a_namespace_of_their_own_are_let_in(large, engine):
    worker = engine.pod("gpu-1")["metadata"]["labels"]
    assert of(large, "NetworkPolicy", "lab-workers")["metadata"]["namespace"] == "tasks"
    for name, port in (("lab-nats", 4222), ("lab-gateway", 8080)):
        assert may(large, name, "ingress", worker, "tasks", port)
        assert not may(large, name, "ingress", worker, "ml", port)


def test_addresses_that_tell_of_the_machine_are_not_reached(large):
    rules = of(large, "NetworkPolicy", "lab-workers")["spec"]["egress"]
    blocks = [peer["ipBlock"] for rule in rules for peer in rule["to"] if "ipBlock" in peer]
    assert {"cidr": "0.0.0.0/0", "except": ["169.254.0.0/16"]} in blocks


def test_everything_that_is_two_may_lose_one_to_a_drain(large, small):
    assert names(large, "PodDisruptionBudget") == {
        "lab-nats", "lab-intake", "lab-searcher", "lab-scheduler", "lab-gateway"
    }  # fmt: skip
    assert names(small, "PodDisruptionBudget") == set()


def test_a_password_that_means_something_in_an_address_is_written_so_that_it_does_not(small):
    url = of(small, "Secret", "lab-database")["stringData"]["url"]
    assert url == "postgresql://steadfast:p%40ss%20word@lab-postgres:5432/steadfast"


def test_images_of_others_are_those_of_compose(small):
    images = {pod["spec"]["containers"][0]["image"] for _, pod in pods(small)}
    assert images == {read_file()[name]["image"] for name in ("nats", "postgres", "minio", "searcher")}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"initialPassword": ""}, "set initialPassword"),
        ({"database": {}}, "set database.existingSecret"),
        ({"objectStore": KEYS}, "set objectStore.endpoint"),
        ({"broker": {"count": 2}}, "broker"),
        ({"servces": {}}, "servces"),
        ({"services": {"gateway": {"replicas": "two"}}}, "replicas"),
        ({"workers": {"gpu": 1}}, "gpu"),
    ],
)
def test_what_makes_no_sense_is_refused(change, says):
    with pytest.raises(Exception, match=says):
        render(SMALL | change)


def test_the_schema_knows_every_value_and_takes_the_defaults():
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    assert not list(jsonschema.Draft7Validator(schema).iter_errors(values))
    assert set(schema["properties"]) - {"global"} == set(values)


GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "kubernetes.md"


def test_the_examples_of_the_guide_are_taken(tmp_path):
    values, pools = re.findall(r"```yaml\n((?:# values|resource_pools).*?)```", GUIDE.read_text(), re.DOTALL)
    objects = render(yaml.safe_load(values))
    assert {problem(resource, version) for resource in objects for version in VERSIONS} == {""}
    assert of(objects, "StatefulSet", "lab-nats")["spec"]["replicas"] == 3
    (tmp_path / "pools.yaml").write_text(pools)
    pod = load_engines(ProvisionerSettings(), tmp_path / "pools.yaml")["gpu"].pod("gpu-1")
    assert problem(pod) == ""
    (rights,) = yaml.safe_load(re.search(r"^rules: .*$", GUIDE.read_text(), re.MULTILINE)[0])["rules"]
    assert of(objects, "Role", "lab-provisioner")["rules"] == [rights]
