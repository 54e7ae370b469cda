"""What is too much for the gateway's loop is done elsewhere, within limits, and says the same."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import tarfile

import pytest

from services.kit.offload import Offload
from services.submission import archive, configuration
from services.web import body_limits, spooled_body
from tests.gateway.test_create import PATH, YAML

LINES = "\n".join(f"  key{n}: {{type: double, minval: {n}.5, maxval: 1e{3 + n % 9}}}" for n in range(300))
LARGE = YAML.replace("hyperparameters:", f"hyperparameters:\n{LINES}")


@pytest.fixture
def elsewhere(open_gateway, monkeypatch):
    """Which jobs were done by another process."""
    done = []
    run = Offload.run

    async def noted(self, who, job, argument, files=()):
        done.append((who, job.function.partition(":")[2]))
        return await run(self, who, job, argument, files)

    monkeypatch.setattr(Offload, "run", noted)
    return done


def posted(gateway, config, files=(), **more):
    return gateway.send(
        "POST", PATH, {"config": config, "modelDefinition": list(files), "validateOnly": True} | more
    )


def file(path, content):
    return {"path": path, "type": 48, "content": base64.b64encode(content).decode(), "mode": 0o644}


def test_a_large_configuration_is_completed_as_a_small_one(gateway, elsewhere, monkeypatch):
    far = posted(gateway, LARGE).json()["config"]
    assert elsewhere == [("determined", "complete")]
    monkeypatch.setattr(configuration, "SMALL_BYTES", 1 << 20)
    near = posted(gateway, LARGE).json()["config"]
    assert len(elsewhere) == 1
    for config in (far, near):
        del config["name"], config["reproducibility"]
    assert far == near
    assert len(far["hyperparameters"]) == 301


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LARGE + "key1: 1\nkey1: 2", "found duplicate key 'key1'"),
        (YAML + "data: [" + "[" * 100_000, "nested too deeply"),
        (YAML + "data: [" + "1," * 120_000 + "]", "more than 100000 values"),
        (LARGE + "\nresources: 7", "<config>.resources"),
    ],
)
def test_errors_of_a_large_configuration_are_reported(gateway, elsewhere, text, reason):
    message = gateway.refused(400, "POST", PATH, {"config": text, "validateOnly": True})
    assert reason in message
    assert elsewhere == [("determined", "complete")]


def test_a_few_lines_that_mean_much_are_read_elsewhere(gateway, elsewhere):
    laughs = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    laughs += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    message = gateway.refused(400, "POST", PATH, {"config": YAML + "\n".join(laughs)})
    assert "more than 100000 values once its aliases are followed" in message
    assert elsewhere == [("determined", "complete")]


def test_a_large_context_is_stored_as_a_small_one_and_is_one_request(gateway, elsewhere, monkeypatch):
    files = [file("a.py", b"print()"), file("data/b.bin", bytes(400_000))]
    body = {"config": YAML, "modelDefinition": files}
    key = {"Idempotency-Key": "once"}
    gateway.post(PATH, body, headers=key)
    far = gateway.peers.commands[-1]
    monkeypatch.setattr(spooled_body, "SMALL_BYTES", 1 << 30)
    gateway.post(PATH, body, headers=key)
    near = gateway.peers.commands[-1]
    assert elsewhere == [("determined", "read")]
    assert far.context == near.context
    assert far.once == near.once
    with gateway.backend.blobs.open(far.context.digest) as stored, tarfile.open(fileobj=stored) as packed:
        assert [member.name for member in packed] == ["a.py", "data/b.bin"]


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ([file("../x", bytes(400_000))], "is outside of it"),
        ([file("x", bytes(400_000)) | {"content": "?" * 400_000}], "is not base64"),
        ([{"path": "x" * 400_000, "mode": "?"}], "modelDefinition.0.mode"),
    ],
)
def test_errors_of_a_large_context_are_reported(gateway, elsewhere, files, reason):
    body = {"config": YAML, "modelDefinition": files}
    assert reason in gateway.refused(400, "POST", PATH, body)
    assert elsewhere == [("determined", "read")]


def test_a_context_of_too_many_files_is_refused_before_they_are_read(gateway, elsewhere):
    body = json.dumps({"config": YAML, "modelDefinition": []}).encode()[:-2]
    body += b",".join([b'{"path":"a"}'] * (archive.MAX_FILES + 1)) + b"]}"
    assert "more than 100000 files" in gateway.refused(400, "POST", PATH, body)
    assert elsewhere == [("determined", "read")]


def test_what_ends_a_process_ends_no_other_work(gateway, elsewhere, monkeypatch):
    """As the kernel does with one that takes too much memory."""
    answer = posted(gateway, LARGE)
    assert answer.status_code == 200
    (process,) = gateway.backend.offload._idle
    process.popen.kill()
    process.popen.wait()
    assert posted(gateway, LARGE).status_code == 200


def test_a_request_without_a_session_may_send_little(gateway):
    gateway.client.headers.pop("Authorization")
    body = b'{"username": "' + b"x" * body_limits.ANONYMOUS_LIMIT_BYTES + b'"}'
    assert "not logged in" in gateway.refused(401, "POST", "/api/v1/auth/login", body)

    async def chunks():
        for _ in range(12):
            yield body[:100_000]

    async def send():
        return await gateway.client.post("/api/v1/auth/login", content=chunks())

    assert gateway.run(send()).status_code == 401


def test_a_body_has_so_much_time(gateway, monkeypatch):
    monkeypatch.setattr(body_limits, "MAX_BODY_S", 0.0)

    async def endless():
        yield b'{"config": "'
        await asyncio.Event().wait()

    async def send():
        return await gateway.client.post(PATH, content=endless())

    answer = gateway.run(send())
    assert (answer.status_code, "did not arrive completely" in answer.text) == (408, True)
    assert gateway.backend.limits.uploads.active == 0


def test_one_user_has_so_many_large_requests_at_once(gateway, elsewhere):
    held = [gateway.backend.limits.uploads.acquire("determined") for _ in range(4)]
    for acquisition in held:
        gateway.run(acquisition)
    answer = posted(gateway, YAML, [file("x", bytes(400_000))])
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) > 0
    assert "you have 4 large requests" in answer.json()["error"]["error"]
    for _ in range(4):
        gateway.backend.limits.uploads.release("determined")
    assert posted(gateway, YAML, [file("x", bytes(400_000))]).status_code == 200


def test_passwords_are_checked_in_threads_of_their_own(gateway, costly_passwords):
    """Whoever tries many at once waits for themselves."""

    async def work():
        wrong = [
            asyncio.ensure_future(
                gateway.client.post(
                    "/api/v1/auth/login", content=b'{"username": "determined", "password": "x"}'
                )
            )
            for _ in range(30)
        ]
        answers = await asyncio.gather(*wrong)
        return sorted({answer.status_code for answer in answers}), [
            answer for answer in answers if answer.status_code == 429
        ]

    statuses, busy = gateway.run(work())
    assert statuses == [401, 429]
    assert "checks of passwords" in busy[0].json()["error"]["error"]
    assert "Retry-After" in busy[0].headers


def test_a_large_context_is_looked_through_elsewhere(gateway, elsewhere):
    files = [file("noise.bin", os.urandom(200_000)), file("src/train.py", b"x = 1\n")]
    gateway.post(PATH, {"config": YAML, "modelDefinition": files})
    elsewhere.clear()
    tree = gateway.get(f"{PATH}/1/file_tree")["files"]
    assert [entry["path"] for entry in tree] == ["noise.bin", "src/train.py"]
    content = gateway.post(f"{PATH}/1/file", {"path": "src/train.py"})["file"]
    assert base64.b64decode(content) == b"x = 1\n"
    assert elsewhere == [("determined", "tree"), ("determined", "one_file")]
    whole = base64.b64decode(gateway.get(f"{PATH}/1/model_def")["b64Tgz"])
    with tarfile.open(fileobj=io.BytesIO(whole)) as packed:
        assert len(packed.getmembers()) == 2
