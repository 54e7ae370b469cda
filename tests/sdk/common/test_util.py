"""Small functions that scripts of 0.25 import, with the answers that 0.25 gives."""

import functools
import json
import random

import numpy as np
import pytest

import determined as det
from determined import constants, util
from determined.common import constants as client_constants
from determined.common import context
from determined.common import util as common_util
from tests.fixtures.own_time import set_time


def test_numbers():
    shown = [util.humanize_float(n) for n in (1234.5678, 0.00012345, 12345678)]
    assert shown == [1235.0, 0.0001234, 12345678]
    assert [util.is_numerical_scalar(n) for n in (1, True, "1", float("nan"))] == [True, True, False, True]
    assert util.filter_duplicates([3, 1, 2, 2, 3]) == {2, 3}
    assert list(common_util.chunks([1, 2, 3, 4, 5], 2)) == [[1, 2], [3, 4], [5]]
    assert [common_util.sizeof_fmt(n) for n in (10, 2048, 3e9)] == ["10.0B", "2.0KB", "2.8GB"]
    assert util.make_timing_log("trained", 100, 1000, 10) == (
        "trained: 1000 records in 100s (10.0 records/s), in 10 batches (0.1 batches/s)"
    )


def test_batch_sizes(caplog):
    assert util.calculate_batch_sizes({"global_batch_size": 17}, 4, "T") == (4, 16)
    assert "lowered to 16" in caplog.text
    assert util.calculate_batch_sizes({"global_batch_size": 17}, 0, "T") == (17, 17)
    for hparams in ({}, {"global_batch_size": 2}, {"global_batch_size": "x"}, {"global_batch_size": True}):
        with pytest.raises(det.errors.InvalidExperimentException):
            util.calculate_batch_sizes(hparams, 4, "T")
    with pytest.raises(det.errors.InvalidExperimentException, match="batch 1"):
        util.validate_batch_metrics([{"a": 1}, {"b": 2}])


def test_looking_at_functions():
    class Parent:
        def f(self): ...

    class Own(Parent):
        def f(self): ...

    class Same(Parent): ...

    assert util.is_overridden(Own().f, Parent)
    assert not util.is_overridden(Same().f, Parent)
    assigned = Same()
    for function in (lambda: None, Own.f, Own().f, functools.partial(print)):
        assigned.f = function
        assert util.is_overridden(assigned.f, Parent)
    assert util.get_member_func(Own(), "f") is not None
    assert util.get_member_func(Own(), "g") is None
    assert [util.has_param(lambda a, b=1: 0, *more) for more in (("b",), ("c",), ("zz", 1))] == [
        True,
        False,
        True,
    ]
    names = [util.match_legacy_trial_class(word) for word in ("a:B", "a.b:C.D", "python x")]
    assert names == [True, True, False]
    assert util.legacy_trial_entrypoint_to_script("a:B")[-1] == "a:B"


def test_secrets_are_masked():
    config = {"checkpoint_storage": {"access_key": "a", "bucket": "c"}, "x": 1}
    assert util.mask_config_dict(config) == {
        "checkpoint_storage": {"access_key": "********", "bucket": "c"},
        "x": 1,
    }
    assert config["checkpoint_storage"]["access_key"] == "a"
    login = {"username": "u", "password": "p", "auth": "", "identitytoken": "t"}
    environment = util.mask_config_dict({"environment": {"registry_auth": login, "image": "i"}})[
        "environment"
    ]
    assert environment == {
        "registry_auth": {**login, "password": "********", "identitytoken": "********"},
        "image": "i",
    }


def test_averages_of_batches():
    batches = [
        {"loss": 1, "array": [1, 2], "text": "x", "none": None},
        {"loss": np.float32(2), "array": [3, 6], "text": "y"},
    ]
    made = util.make_metrics(None, batches)
    assert made == {
        "batch_metrics": batches,
        "avg_metrics": {"loss": 1.5, "array": 3.0, "text": None, "none": None},
    }
    assert json.dumps(made["avg_metrics"])


def test_links_and_trees(tmp_path):
    (tmp_path / "a").write_text("x")
    (tmp_path / "there").write_text("old")
    util.force_create_symlink(str(tmp_path / "a"), str(tmp_path / "there"))
    assert (tmp_path / "there").read_text() == "x"
    (tmp_path / "tree").mkdir()
    util.rmtree_nfs_safe(tmp_path / "tree")
    with pytest.raises(FileNotFoundError):
        util.rmtree_nfs_safe(tmp_path / "tree")


def test_a_download_is_tried_again(monkeypatch):
    set_time(monkeypatch, util, sleep=lambda _: None)

    class Blob:
        failures = 2

        def download_as_bytes(self):
            self.failures -= 1
            if self.failures >= 0:
                raise OSError("away")
            return b"content"

    assert util.download_gcs_blob_with_backoff(Blob()) == b"content"
    with pytest.raises(OSError, match="away"):
        util.download_gcs_blob_with_backoff(Blob(), n_retries=2)


def test_decorators():
    random.seed(1)
    expected = random.random()
    random.seed(1)
    common_util.preserve_random_state(random.random)()
    assert random.random() == expected

    @common_util.deprecated("use z")
    def old():
        return 5

    with pytest.warns(FutureWarning, match="old is old: use z"):
        assert old() == 5


def test_waiting():
    assert common_util.wait_for(lambda: (True, 7)) == 7
    with pytest.raises(TimeoutError):
        common_util.wait_for(lambda: (False, 1), timeout=0)


def test_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("DET_MASTER", "http://there:1")
    monkeypatch.setenv("DET_USER", "ada")
    monkeypatch.setenv("DET_DEBUG", "true")
    monkeypatch.setenv("DET_DEBUG_CONFIG_PATH", str(tmp_path))
    monkeypatch.setenv("DET_RETRY_CONFIG", '{"total": 3}')
    assert common_util.get_default_master_address() == "http://there:1"
    assert common_util.get_det_username_from_env() == "ada"
    assert common_util.debug_mode()
    assert common_util.get_config_path() == tmp_path
    assert common_util.get_max_retries_config().total == 3


def test_constants():
    assert constants.DEFAULT_EXP_CFG["scheduling_unit"] == 100
    assert client_constants.MAX_CONTEXT_SIZE == 95 << 20
    assert ".detignore" not in client_constants.DEFAULT_DETIGNORE


@pytest.mark.parametrize(
    "name",
    [
        "INTER_TRAIN_PROCESS_COMM_PORT_1",
        "INTER_TRAIN_PROCESS_COMM_PORT_2",
        "DTRAIN_SSH_PORT",
        "HOROVOD_GLOO_RENDEZVOUS_PORT",
    ],
)
def test_ports_are_those_of_the_run_also_where_the_module_was_loaded_before(name, monkeypatch):
    """As in an interpreter that is kept for warm starts."""
    monkeypatch.setenv(name, "4711")
    assert getattr(constants, name) == 4711


def test_packing(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "a.py").write_text("12345")
    (tmp_path / "more").write_text("x")
    packed = context.read_legacy_context(tmp_path / "model", [tmp_path / "more"])
    assert sorted(file["path"] for file in packed) == ["a.py", "more"]
    assert [file["path"] for file in context.read_legacy_context(None, [tmp_path / "more"])] == ["more"]
    with pytest.raises(ValueError, match="the limit is 4"):
        context.read_legacy_context(tmp_path / "model", limit=4)
