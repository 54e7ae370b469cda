"""The code of an experiment: as one archive, as a tree, as single files."""

from __future__ import annotations

import base64
import io
import tarfile

import pytest

from det_contracts.context import Context
from services.rest_requests.bodies import ContextItem
from services.submission import archive
from tests.gateway import stories as story


@pytest.fixture
def sent(gateway):
    """Experiment 1 came with train.py and data/x.txt; 2 came without code."""
    items = [
        ContextItem(path="data", type=53, mode=0o755),
        ContextItem(path="data/x.txt", content=base64.b64encode(b"x").decode(), mtime=1_700_000_000),
        ContextItem(path="train.py", content=base64.b64encode(b"print()").decode()),
    ]
    with archive.pack(items) as (context, file):
        gateway.backend.blobs.put(context.digest, file)
    made = story.created(1, name="My exp / one")
    import msgspec

    assert isinstance(context, Context)
    gateway.apply(msgspec.structs.replace(made, context=context), story.created(2))
    return gateway


def names(data):
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as tar:
        return sorted(tar.getnames())


def test_the_archive(sent):
    whole = base64.b64decode(sent.get("/api/v1/experiments/1/model_def")["b64Tgz"])
    assert names(whole) == ["data", "data/x.txt", "train.py"]
    answer = sent.send("GET", "/experiments/1/model_def")
    assert answer.content == whole
    assert answer.headers["content-length"] == str(len(whole))
    assert 'filename="exp1_My_exp_one_model_def.tar.gz"' in answer.headers["content-disposition"]


def test_the_tree(sent):
    folder, script = sent.get("/api/v1/experiments/1/file_tree")["files"]
    assert (folder["path"], folder["isDir"], script["path"], script["isDir"]) == (
        "data",
        True,
        "train.py",
        False,
    )
    assert script["contentLength"] == 7
    (inner,) = folder["files"]
    assert (inner["path"], inner["name"], inner["modifiedTime"][:10]) == ("data/x.txt", "x.txt", "2023-11-14")


@pytest.mark.parametrize("path", ["data/x.txt", "./data/x.txt"])
def test_one_file(sent, path):
    answer = sent.post("/api/v1/experiments/1/file", {"path": path})
    assert base64.b64decode(answer["file"]) == b"x"


@pytest.mark.parametrize("path", ["data", "nope", "../secret", "/etc/passwd"])
def test_files_that_are_not_there(sent, path):
    assert "not found" in sent.refused(404, "POST", "/api/v1/experiments/1/file", {"path": path})


def test_no_code(sent):
    assert "model definition" in sent.refused(404, "GET", "/api/v1/experiments/2/file_tree")
    assert sent.send("GET", "/experiments/2/model_def").status_code == 404
