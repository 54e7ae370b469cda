"""The typed calls of the published client of 0.25.0, which fail where an answer lacks a field they read."""

import pytest

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("published")]

LISTS = """
import enum, inspect, re
from determined.common import api
from determined.common.api import authentication, bindings, certs

certs.cli_cert = certs.default_load("{address}")
login = authentication.Authentication("{address}", requested_user="admin", password="", cert=certs.cli_cert)
session = api.Session("{address}", "admin", login, certs.cli_cert)
found = bindings.get_GetExperimentTrials(session, experimentId=1).trials
trial = found[0].id
"""

SORTED = """
def orders(call):
    kind = str(inspect.signature(call).parameters["sortBy"].annotation)
    return list(getattr(bindings, re.search(r"v1\\w+SortBy", kind)[0]))

asked = 0
for name, call in vars(bindings).items():
    if not name.startswith("get_") or not inspect.isfunction(call):
        continue
    taken = inspect.signature(call).parameters
    needed = [one for one in taken.values() if one.default is one.empty and one.name != "session"]
    if "sortBy" not in taken or len(needed) > 1:
        continue
    about = {{one.name: "m" if one.name == "modelName" else 1 for one in needed}}
    for order in orders(call):
        for way in bindings.v1OrderBy:
            call(session, sortBy=order, orderBy=way, **about)
            asked += 1
print("asked", asked)
"""

REPORTED = """
def metrics(step, **values):
    told = bindings.v1Metrics(avgMetrics=values)
    return bindings.v1TrialMetrics(metrics=told, stepsCompleted=step, trialId=trial, trialRunId=0)

early = bindings.v1ReportTrialMetricsRequest(group="inference", metrics=metrics(3, accuracy=0.5))
bindings.post_ReportTrialMetrics(session, metrics_trialId=trial, body=early)
(page,) = bindings.get_GetMetrics(session, group="inference", trialIds=[trial])
assert [one.metrics["avg_metrics"] for one in page.metrics] == [{{"accuracy": 0.5}}], page.to_json(False)
curves = bindings.get_CompareTrials(session, trialIds=[trial], metricNames=["accuracy"]).trials
assert [(one.group, one.data[0].batches) for one in curves[0].metrics] == [("inference", 3)]

kind = bindings.v1TrialSourceInfoType.INFERENCE
used = bindings.v1TrialSourceInfo(
    checkpointUuid="{uuid}", trialId=trial, trialSourceInfoType=kind, modelId={model}, modelVersion=1
)
body = bindings.v1ReportTrialSourceInfoRequest(trialSourceInfo=used)
bindings.post_ReportTrialSourceInfo(session, body=body)
by_checkpoint = bindings.get_GetTrialMetricsBySourceInfoCheckpoint(session, checkpointUuid="{uuid}").data
by_version = bindings.get_GetTrialSourceInfoMetricsByModelVersion(
    session, modelName="m", modelVersionNum=1, trialSourceInfoType=kind
).data
for data in (by_checkpoint, by_version):
    assert [(one.trialId, one.metricReports[0].totalBatches) for one in data] == [(trial, 3)]
bindings.post_SetUserPassword(session, userId=2, body="")
print("told")
"""

CONFIG = """\
name: judges
entrypoint: "true"
searcher: {name: single, metric: accuracy, max_length: {batches: 1}}
"""

STORE = """\
import determined as det
with det.core.init() as core:
    with core.checkpoint.store_path({"steps_completed": 1}) as (path, uuid):
        (path / "state").write_text("x")
"""


def test_typed_calls_read_every_answer(local_cluster, theirs, tmp_path):
    cluster = local_cluster(slots=1)
    (tmp_path / "judges.yaml").write_text(CONFIG)
    (tmp_path / "store.py").write_text(STORE)
    cluster.create("judges.yaml", tmp_path, "--paused")
    stored = cluster.create("judges.yaml", tmp_path, "--config", "entrypoint=python3 store.py")
    cluster.wait_for_end(stored)
    (checkpoint,) = cluster.get(f"experiments/{stored}/checkpoints")["checkpoints"]
    theirs(cluster, "model", "create", "m")
    theirs(cluster, "model", "register-version", "m", checkpoint["uuid"])
    model = cluster.get("models/m")["model"]["id"]
    names = {"address": cluster.address, "uuid": checkpoint["uuid"], "model": model}
    output = theirs(cluster, python=(LISTS + SORTED).format(**names))
    assert int(output.split()[-1]) > 150
    assert "told" in theirs(cluster, python=(LISTS + REPORTED).format(**names))
