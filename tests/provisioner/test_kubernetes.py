"""Workers as pods, with a stand-in for the API server that takes only what Kubernetes' schemas take."""

import asyncio
import time

import pytest

from services.kit.settings import BadSettings
from services.provisioner.engines import kubernetes
from services.provisioner.engines.kubernetes import KubernetesEngine
from services.provisioner.engines.kubernetes_settings import KubernetesSettings
from services.provisioner.engines.protocol import EngineRefused, EngineUnavailable
from services.provisioner.plan import DesiredPool, DesiredWorker
from services.provisioner.reconciliation import reconcile_pool
from tests.fixtures.http_server import serving
from tests.fixtures.kubernetes_api import FakeKubernetesApi
from tests.fixtures.kubernetes_schemas import VERSIONS, problem
from tests.fixtures.local_cluster import wait_for

WAITS_FOR_ROOM = (
    "0/{nodes} nodes are available: {taints} node(s) had untolerated taint {{a: b}}, {gpus} Insufficient "
    "nvidia.com/gpu. preemption: 0/{nodes} nodes are available: {nodes} No victims found."
)


@pytest.fixture
def api():
    fake_api = FakeKubernetesApi()
    with serving(fake_api.server):
        yield fake_api
        for events in fake_api._watches:
            events.put(None)


@pytest.fixture
def make(api, tmp_path):
    (tmp_path / "kubeconfig").write_text(api.kubeconfig())

    def engine(pool="gpu", cluster="c1", **settings):
        usual = {"image": "worker:1", "kubeconfig": str(tmp_path / "kubeconfig"), "request_timeout_s": 20.0}
        return KubernetesEngine(pool, 4, cluster, KubernetesSettings(**usual | settings))

    return engine


def list_workers(engine):
    return {worker.worker_id: worker for worker in asyncio.run(engine.list_workers())}


def started(engine, api, id="gpu-1"):
    detail = asyncio.run(engine.start(id))
    return detail.removeprefix("pod ")


def test_a_worker_is_made_once_and_found_by_a_provisioner_that_knows_nothing_of_it(make, api):
    name = started(make(), api)
    assert started(make(), api) == name
    assert list(api.pods) == [name]
    worker = list_workers(make())["gpu-1"]
    assert (worker.handle, worker.phase, worker.detail) == (name, "queued", f"pod {name}: Pending")
    assert list_workers(make(pool="cpu")) == list_workers(make(cluster="c2")) == {}


@pytest.mark.parametrize("id", ["Gpu_Pool-1", "gpu-pool-1", "gpu_pool-1", f"{'long' * 40}-1"])
def test_whatever_a_pool_is_called_its_pods_have_names_of_their_own(make, api, id):
    pool = id.removesuffix("-1")
    engine = make(pool=pool, cluster="a cluster of ours")
    asyncio.run(make(pool="gpu_pool").start("gpu_pool-1"))
    started(engine, api, id)
    assert list(list_workers(engine)) == [id]
    assert len(api.pods) == 2


def test_a_pod_runs_on_a_node_and_has_an_end(make, api):
    engine = make(time_limit_s=3600)
    name = started(engine, api)
    api.status(name, {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}, spec={"nodeName": "n7"})
    worker = list_workers(engine)["gpu-1"]
    assert (worker.phase, worker.detail) == ("running", f"pod {name} on node n7")
    assert worker.ends_at == 1767225600 + 3600


def test_why_a_pod_waits_is_reported_without_changing_details(make, api):
    engine = make()
    name = started(engine, api)
    received = set()
    for nodes, taints, gpus in ((12, 4, 8), (13, 2, 11)):
        text = WAITS_FOR_ROOM.format(nodes=nodes, taints=taints, gpus=gpus)
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": text}
        api.status(name, {"phase": "Pending", "conditions": [condition]})
        received.add(list_workers(engine)["gpu-1"].detail)
    (detail,) = received
    assert "Insufficient nvidia.com/gpu, node(s) had untolerated taint {a: b}" in detail
    assert "Unschedulable" in detail


def test_an_image_that_cannot_be_pulled_is_reported_and_the_pod_deleted(make, api):
    engine = make()
    name = started(engine, api)
    text = 'Back-off pulling image "worker:1": ErrImagePull: not found'
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": text}}
    status = {"name": "worker", "image": "", "imageID": "", "ready": False, "restartCount": 0}
    api.status(name, {"phase": "Pending", "containerStatuses": [status | {"state": waiting}]})
    worker = list_workers(engine)["gpu-1"]
    assert worker.phase == "over"
    assert text in worker.detail
    asyncio.run(engine.forget(worker))
    assert api.pods == {}


@pytest.mark.parametrize(
    ("status", "says"),
    [
        ({"reason": "Evicted", "message": "The node was low on resource: memory."}, "Evicted: The node was"),
        ({"reason": "DeadlineExceeded", "message": "active on the node longer"}, "DeadlineExceeded: active"),
        ({"terminated": ("OOMKilled", 137, "")}, "OOMKilled, exit status 137"),
        (
            {"terminated": ("Error", 2, "first\nSTEADFAST_NATS_URL makes no sense\n")},
            "Error, exit status 2: STEADFAST_NATS_URL makes no sense",
        ),
    ],
)
def test_why_a_pod_ended_is_reported(make, api, status, says):
    engine = make()
    name = started(engine, api)
    if "terminated" in status:
        reason, code, message = status.pop("terminated")
        state = {"terminated": {"reason": reason, "exitCode": code, "message": message}}
        worker = {"name": "worker", "image": "", "imageID": "", "ready": False, "restartCount": 0}
        status = {"containerStatuses": [worker | {"state": state}]}
    api.status(name, {"phase": "Failed", **status})
    listed_worker = list_workers(engine)["gpu-1"]
    assert listed_worker.phase == "over"
    assert says in listed_worker.detail


def test_a_pod_that_must_leave_its_node_says_why_and_until_when(make, api):
    engine = make()
    name = started(engine, api)
    api.status(name, {"phase": "Running"})
    before = time.time()
    api.evict(name, "PreemptionByScheduler", "preempting to accommodate a higher priority pod")
    worker = list_workers(engine)["gpu-1"]
    assert worker.phase == "running"
    assert "must leave: PreemptionByScheduler: preempting to accommodate" in worker.detail
    assert before + 100 < worker.ends_at < before + 300


def test_a_node_that_does_not_answer_is_no_end(make, api):
    engine = make()
    name = started(engine, api)
    api.status(name, {"phase": "Unknown"})
    assert list_workers(engine)["gpu-1"].phase == "running"


def test_a_running_pod_gets_its_grace_period_and_a_missing_one_is_no_error(make, api):
    engine = make(grace_s=60)
    name = started(engine, api)
    api.status(name, {"phase": "Running"})
    worker = list_workers(engine)["gpu-1"]
    asyncio.run(engine.stop(worker))
    assert list_workers(engine)["gpu-1"].ends_at > time.time()
    assert "gracePeriodSeconds" not in str(api.requests)
    del api.pods[name]
    asyncio.run(engine.stop(worker))


def test_a_quota_is_a_refusal_in_the_words_of_kubernetes(make, api):
    api.quota = 0
    with pytest.raises(EngineRefused, match="exceeded quota: gpus"):
        asyncio.run(make().start("gpu-1"))


def test_a_lost_answer_to_a_request_is_no_second_pod(make, api):
    engine = make()
    api.loses_answers = True
    with pytest.raises(EngineUnavailable):
        asyncio.run(engine.start("gpu-1"))
    api.loses_answers = False
    assert list(list_workers(engine)) == ["gpu-1"]
    started(engine, api)
    assert len(api.pods) == 1


@pytest.mark.parametrize("code", [401, 408, 409, 410, 429, 500, 503])
def test_of_an_answer_that_is_none_nothing_follows(make, api, code):
    engine = make()
    api.answers = [(code, "not now", {})] * 2
    with pytest.raises(EngineUnavailable, match="not now"):
        asyncio.run(engine.start("gpu-1"))
    api.answers = [(code, "not now", {})] * 2
    with pytest.raises(EngineUnavailable, match="not now"):
        asyncio.run(engine.list_workers())
    assert api.pods == {}


def test_a_list_that_may_not_be_asked_for_is_no_empty_list(make, tmp_path):
    with pytest.raises(EngineUnavailable, match="no such right"):
        asyncio.run(make(namespace="another").list_workers())


def test_an_api_server_that_asks_to_wait_is_left_alone(make, api):
    engine = make()
    api.answers = [(429, "too many requests", {"Retry-After": "30"})]
    with pytest.raises(EngineUnavailable, match="too many requests"):
        asyncio.run(engine.list_workers())
    requests_before = len(api.requests)
    with pytest.raises(EngineUnavailable, match="is limiting our requests"):
        asyncio.run(engine.list_workers())
    assert len(api.requests) == requests_before


def test_a_long_list_comes_in_pages_and_from_the_beginning_where_a_page_is_too_old(make, api, monkeypatch):
    monkeypatch.setattr(kubernetes, "PAGE", 2)
    engine = make()
    for number in range(1, 6):
        started(engine, api, f"gpu-{number}")
    api.lists_lag = True
    assert sorted(list_workers(engine)) == [f"gpu-{number}" for number in range(1, 6)]
    assert not api.lists_lag


def test_where_nobody_answers_the_engine_is_away(make, api, tmp_path):
    for text in (api.kubeconfig(token="old"), api.kubeconfig().replace(api.url, "http://127.0.0.1:1")):
        (tmp_path / "kubeconfig").write_text(text)
        with pytest.raises(EngineUnavailable, match="the API server of Kubernetes"):
            asyncio.run(make().list_workers())
    with pytest.raises(EngineUnavailable, match="the API server of Kubernetes"):
        asyncio.run(make(kubeconfig=str(tmp_path / "none")).list_workers())


def test_a_proxy_that_answers_in_its_place_is_an_engine_that_is_away(make, api):
    api.answers_in_html = True
    with pytest.raises(EngineUnavailable):
        asyncio.run(make().list_workers())


async def _hears(engine, api, does):
    await engine.list_workers()
    hears = asyncio.create_task(engine.wait_for_change())
    await asyncio.to_thread(wait_for, lambda: api.watched, 20, "somebody to watch")
    assert not hears.done()
    await asyncio.to_thread(does)
    async with asyncio.timeout(60):
        await hears


def test_what_changes_is_heard_at_once(make, api):
    engine = make()
    name = started(engine, api)
    asyncio.run(_hears(engine, api, lambda: api.status(name, {"phase": "Running"})))
    assert "resourceVersion=1" in str([path for _, path in api.requests if "watch" in path])


def test_an_expired_watch_is_reported_as_too_old(make, api):
    with pytest.raises(EngineUnavailable, match="too old"):
        asyncio.run(_hears(make(), api, api.expire_watches))


def test_pools_are_reported_by_the_same_round_as_of_any_engine(make, api):
    engine, reports = make(), []

    async def ask():
        return DesiredPool(
            pool="gpu", newest=1, workers=(DesiredWorker(id="gpu-1", number=1, phase="wanted"),)
        )

    async def tell(report):
        reports.append(report)

    assert asyncio.run(reconcile_pool("gpu", engine, ask, tell)) == ""
    ((report,),) = [pool_report.workers for pool_report in reports]
    assert (report.worker_id, report.phase) == ("gpu-1", "queued")
    assert len(api.pods) == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_pool_says_is_in_the_pod_and_every_version_takes_it(make, version):
    engine = make(
        image_pull_secrets=("registry",),
        service_account="workers",
        requests={"cpu": "8"},
        limits={"memory": "64Gi"},
        gpus=4,
        node_selector={"gpu": "a100"},
        tolerations=({"key": "nvidia.com/gpu", "operator": "Exists"},),
        priority_class="batch",
        runtime_class="nvidia",
        labels={"kueue.x-k8s.io/queue-name": "lab"},
        environment={"STEADFAST_NATS_URL": "nats://broker:4222"},
        environment_from=("store",),
        keys_secret="worker-keys",
        volumes=({"name": "data", "persistentVolumeClaim": {"claimName": "data"}},),
        mounts=({"name": "data", "mountPath": "/data"},),
        pod={"hostNetwork": True, "securityContext": {"supplementalGroups": [7]}},
    )
    pod = engine.pod("gpu-1")
    assert problem(pod, version) == ""
    spec = pod["spec"]
    (container,) = spec["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "8"},
        "limits": {"memory": "64Gi", "nvidia.com/gpu": "4"},
    }
    environment = {variable["name"]: variable.get("value") for variable in container["env"]}
    assert environment["STEADFAST_WORKER_ID"] == "gpu-1"
    assert environment["STEADFAST_WORKER_GPU"] == "true"
    assert environment["STEADFAST_WORKER_SIGNING"] == "/keys/worker/worker-signing.json"
    assert spec["nodeSelector"] == {"gpu": "a100"}
    assert spec["automountServiceAccountToken"] is False
    assert spec["hostNetwork"] is True
    assert spec["securityContext"]["supplementalGroups"] == [7]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "lab"


def test_a_pod_without_root_is_what_a_restricted_namespace_takes(make):
    spec = make(run_tasks_as="", keys_secret="keys").pod("gpu-1")["spec"]
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert "STEADFAST_WORKER_RUN_AS" not in str(container["env"])
    (keys,) = [volume for volume in spec["volumes"] if volume["name"] == "keys"]
    assert keys["secret"]["defaultMode"] == 0o440


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"image": ""}, "kubernetes.image is empty"),
        ({"grace_s": 10}, "kubernetes.grace_s is 10"),
        ({"pod": {"hostNetwrok": True}}, "pod.spec.hostNetwrok"),
        ({"tolerations": ({"kye": "x"},)}, r"pod.spec.tolerations\[0\].kye"),
        ({"pod": {"hostNetwork": "perhaps"}}, "Expected `bool"),
    ],
)
def test_what_kubernetes_does_not_know_is_refused_before_a_pod_is_made(make, settings, says):
    with pytest.raises(BadSettings, match=says):
        make(**settings)


def test_what_the_stand_in_takes_is_what_kubernetes_takes(api):
    wrong = api.create({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [], "hostNetwrok": True}})[
        1
    ]["message"]
    assert "hostNetwrok" in wrong
