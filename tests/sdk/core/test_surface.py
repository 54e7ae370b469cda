import logging
import re
import subprocess
import sys

import pytest

import determined as det
from determined import errors

HEAVY = {
    "boto3", "botocore", "google", "azure", "numpy", "tensorflow", "keras", "torch", "zmq", "nats", "minio",
    "obstore", "requests", "pathspec", "yaml", "asyncio", "http", "urllib3",
}  # fmt: skip


def test_importing_is_light():
    modules = ("", ".util", ".core", ".common.storage", ".tensorboard", ".tensorboard.util")
    code = "".join(f"import determined{name}; " for name in modules) + "import sys; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert HEAVY & {name.split(".")[0] for name in ran.stdout.split()} == set()


def test_names():
    assert det.LOG_FORMAT == "%(levelname)s: [%(process)s] %(name)s: %(message)s"
    assert re.fullmatch(r"\d+(\.\d+)*(\+[a-z0-9]+(\.[a-z0-9]+)*)?", det.__version__)
    assert det.__version__.startswith("0.25.0")
    for name in det.__all__:
        assert getattr(det, name) is not None
    for name in det.core.__all__:
        assert getattr(det.core, name) is not None
    assert not hasattr(det, "no_such_name")


def test_log_format_carries_the_level(caplog):
    record = logging.LogRecord("determined.core", logging.WARNING, "", 0, "text", None, None)
    assert logging.Formatter(det.LOG_FORMAT).format(record).startswith("WARNING: [")


def test_invalid_hp():
    assert det.InvalidHP("too large").msg == "too large"
    assert det.InvalidHP().msg
    with pytest.raises(TypeError, match="str, not int"):
        det.InvalidHP(3)


def test_errors():
    assert not issubclass(errors.InvalidExperimentException, Exception)
    for name in ("InvalidDataTypeException", "InvalidConfigurationException", "InvalidModelException"):
        assert issubclass(getattr(errors, name), errors.InvalidExperimentException)
    for name in (
        "EnterpriseOnlyError", "InternalException", "InvalidCheckpointException", "StopLoadingImplementation",
        "WorkerError", "WorkerFinishedGracefully", "SkipWorkloadException", "CheckpointNotFound",
        "CheckpointStateException", "NoDirectStorageAccess", "ProxiedDownloadFailed",
        "MultipleDownloadsFailed",
    ):  # fmt: skip
        assert issubclass(getattr(errors, name), Exception)


def test_util():
    assert det.util.merge_dicts({"a": {"b": 1}, "c": 1}, {"a": {"d": 2}, "c": 3}) == {
        "a": {"b": 1, "d": 2},
        "c": 3,
    }
    made = det.util.make_metrics(4, [{"loss": 1.0}, {"loss": 3.0}])
    assert made["avg_metrics"] == {"loss": 2.0}
    assert made["num_inputs"] == 4
