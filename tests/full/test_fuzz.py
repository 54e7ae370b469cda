"""Requests made from the OpenAPI document, against a live cluster.

No answer is a failure of ours, and what the document says of requests and answers holds.
"""

import subprocess
import sys
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
NOT_TRIED = "live|logout|/logs|stream|/master/rebuild|/trials/metrics/|/profiler/metrics"
"""Paths: what ends the session, restarts a service, answers with one JSON object per line as 0.25 did, or
refuses more values than any request may have (413) before it looks at the schema."""
UNSAID = "positive_data_acceptance"
"""The check that whatever fits the schema is accepted: a schema cannot say that a configuration is valid."""
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

        @hypothesis.given(case=operation.as_strategy())
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


@pytest.mark.expected_log("Invalid HTTP request received", "a method of its own invention is no HTTP")
def test_what_the_document_says_holds(local_cluster, tmp_path):
    """Each value at each limit, right and wrong, each method, with and without a token."""
    cluster = local_cluster()
    cluster.get("me")
    words = [
        "-m", "schemathesis.cli", "run", f"{cluster.address}/api/v1/openapi.json",
        "--header", f"Authorization: Bearer {cluster._token}",
        "--phases", "coverage", "--exclude-checks", UNSAID, "--exclude-path-regex", NOT_TRIED,
        "--continue-on-failure", "--request-timeout", "60", "--warnings", "off", "--no-color",
    ]  # fmt: skip
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert " generated, " in done.stdout, done.stdout[-3000:] + done.stderr[-3000:]
    failures = "\n".join(line[:300] for line in done.stdout.partition("= FAILURES =")[2].splitlines())
    assert done.returncode == 0, failures[-8000:] or done.stdout[-3000:]
