"""Requests made from the OpenAPI document, against a live cluster: no answer is a failure of ours."""

import warnings

import hypothesis
import pytest

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
pytestmark = pytest.mark.timeout(900)
EXAMPLES = 12
FAILURES = {500, 502, 504}
WAITING = {"follow", "timeoutSeconds", "periodSeconds"}
LEFT_OUT = {
    "get_allocations_allocation_id_resources_resources_id_rendezvous",
    "get_live",
    "post_auth_logout",
}
SETTINGS = hypothesis.settings(
    max_examples=EXAMPLES,
    database=None,
    derandomize=True,
    suppress_health_check=list(hypothesis.HealthCheck),
)


@pytest.mark.filterwarnings("ignore")
def test_no_request_is_a_failure(local_cluster):
    cluster = local_cluster()
    cluster.get("me")
    headers = {"Authorization": f"Bearer {cluster._token}"}
    schema = schemathesis.openapi.from_url(f"{cluster.address}/api/v1/openapi.json")
    failures, requests = [], 0
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.definition.raw["operationId"] in LEFT_OUT:
            continue

        @hypothesis.apply(case=operation.as_strategy())
        @SETTINGS
        def ask(case):
            nonlocal requests
            requests += 1
            case.query = {name: value for name, value in (case.query or {}).items() if name not in WAITING}
            answer = case.call(base_url=cluster.address, headers=headers, timeout=60)
            if answer.status_code in FAILURES:
                failure = (answer.status_code, answer.text[:300])
                failures.append(f"{case.method} {case.formatted_path} {case.body!r}: {failure}")

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ask()
    assert requests > 1000
    assert not failures, "\n".join(failures)
    assert cluster.get("me")["user"]["username"] == "determined"
