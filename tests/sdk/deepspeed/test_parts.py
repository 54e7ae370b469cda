"""What needs no DeepSpeed: configurations, places of ranks, metrics of calls, refusals."""

import json
import logging
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from det_contracts import expconf
from determined import core
from determined.errors import InternalException, InvalidExperimentException
from determined.pytorch.deepspeed import (
    DeepSpeedTrialContext,
    ModelParallelUnit,
    make_data_parallel_mpu,
    make_deepspeed_mpu,
    overwrite_deepspeed_config,
)
from determined.pytorch.deepspeed import _metrics as metrics
from determined.pytorch.deepspeed._entry import check_optimizations

BASE = {"optimizer": {"type": "Adam", "params": {"lr": 0.1, "eps": 1}}, "steps": 2}


def test_values_replace_leaves_and_arguments_stay(tmp_path):
    source = {"optimizer": {"params": {"lr": 0.5}}, "new": {"a": 1}, "steps": {"deep": True}}
    expected = {
        "optimizer": {"type": "Adam", "params": {"lr": 0.5, "eps": 1}},
        "steps": {"deep": True},
        "new": {"a": 1},
    }
    before = json.dumps([BASE, source])
    config = overwrite_deepspeed_config(BASE, source)
    assert config == expected
    config["new"]["a"] = 2
    assert json.dumps([BASE, source]) == before
    path = tmp_path / "ds.json"
    path.write_text(json.dumps(BASE))
    assert overwrite_deepspeed_config(str(path), source) == expected


def test_what_is_no_configuration(tmp_path):
    with pytest.raises(TypeError, match="dict or the path"):
        overwrite_deepspeed_config(3, {})
    path = tmp_path / "ds.json"
    path.write_text('{"a": {"b": 1, "b": 2}}')
    with pytest.raises(ValueError, match="names b more than once"):
        overwrite_deepspeed_config(str(path), {})


def test_places_of_ranks():
    group = SimpleNamespace(rank=1, size=3)
    assert make_data_parallel_mpu(group) == ModelParallelUnit(1, 3, True, True)

    def at(stage, slice_rank=0):
        return make_deepspeed_mpu(
            SimpleNamespace(
                get_pipe_parallel_rank=lambda: stage,
                get_pipe_parallel_world_size=lambda: 3,
                get_slice_parallel_rank=lambda: slice_rank,
                get_data_parallel_rank=lambda: 4,
                get_data_parallel_world_size=lambda: 5,
            )
        )

    assert at(0) == ModelParallelUnit(4, 5, False, True)
    assert at(1) == ModelParallelUnit(4, 5, False, False)
    assert at(2) == ModelParallelUnit(4, 5, True, True)
    assert at(2, slice_rank=1) == ModelParallelUnit(4, 5, False, False)


def group_of(each):
    """A group in which the ranks say this."""
    return SimpleNamespace(allgather=lambda mine: each)


def test_metrics_are_of_ranks_that_report():
    each = [[{"a": 1.0}, {"a": 2.0}], None, [{"a": 3.0}, {"a": 4.0}]]
    assert metrics.of_all_ranks(None, group_of(each), True) == [{"a": 2.0}, {"a": 3.0}]
    assert metrics.of_all_ranks(None, group_of(each), False) == each[0]
    assert metrics.mean_of_calls(None, group_of([[{"a": 1.0}], None, [{"a": 2.0}, {"a": 6.0}]])) == {"a": 3.0}
    assert metrics.averages([{"a": 1.0}, {"a": 2.0}]) == {"a": 1.5}


def test_metrics_that_do_not_fit():
    with pytest.raises(InvalidExperimentException, match=r"train_batch\(\) must return a dict"):
        metrics.detached(torch.tensor(1.0), "train_batch", [])
    with pytest.raises(InvalidExperimentException, match=r"\['b'\] after \['a'\]"):
        metrics.detached({"b": 1}, "train_batch", [{"a": 1}])
    with pytest.raises(InvalidExperimentException, match="different names"):
        metrics.of_all_ranks(None, group_of([[{"a": 1}], [{"b": 1}]]), True)
    with pytest.raises(RuntimeError, match="empty"):
        metrics.mean_of_calls(None, group_of([None, []]))


def test_what_deepspeed_decides_is_refused_and_what_means_nothing_warned_of(caplog):
    with pytest.raises(InvalidExperimentException, match="fp16 or bf16"):
        check_optimizations({"mixed_precision": "O1"})
    with pytest.raises(InvalidExperimentException, match="gradient_accumulation_steps"):
        check_optimizations({"aggregation_frequency": 2})
    with caplog.at_level(logging.WARNING):
        check_optimizations({"gradient_compression": True, "average_training_metrics": False})
    assert "gradient_compression has no effect" in caplog.text


def test_defaults_of_a_complete_configuration_cause_no_warning(caplog):
    complete = expconf.complete(
        {
            "name": "any",
            "entrypoint": "model_def:Any",
            "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}},
            "checkpoint_storage": {"type": "shared_fs", "host_path": "/tmp"},
        },
        defaults=[],
        seed=0,
        name="",
    )
    with caplog.at_level(logging.WARNING):
        check_optimizations(complete["optimizations"])
    assert caplog.records == []
    assert "average_training_metrics" not in caplog.text


CONFIG = {
    "entrypoint": "a:b",
    "hyperparameters": {"width": 3},
    "searcher": {"name": "single", "metric": "m", "max_length": {"batches": 1}},
}


def test_a_context_before_an_engine_is_wrapped():
    context = DeepSpeedTrialContext.from_config(CONFIG)
    assert context.get_hparam("width") == 3
    assert not context.use_pipeline_parallel
    with pytest.raises(InternalException, match="once an engine is wrapped"):
        _ = context.num_micro_batches_per_slot
    with pytest.raises(InternalException, match="once an engine is wrapped"):
        _ = context.train_micro_batch_size_per_gpu
    with pytest.raises(InvalidExperimentException, match="after wrap_model_engine"):
        context.set_mpu(ModelParallelUnit(0, 1, True, True))
    assert context.distributed.size == core.DummyDistributedContext().size


def test_the_unit_is_set_once_and_somebody_reports():
    context = DeepSpeedTrialContext.from_config(CONFIG)
    context.models.append(object())
    with pytest.raises(InvalidExperimentException, match="no rank reports"):
        context.set_mpu(ModelParallelUnit(0, 1, False, True))
    context.set_mpu(ModelParallelUnit(0, 1, True, True))
    with pytest.raises(InvalidExperimentException, match="once"):
        context.set_mpu(ModelParallelUnit(0, 1, True, True))


def test_deepspeed_is_imported_when_it_is_used():
    code = "import sys, determined.pytorch.deepspeed; print('deepspeed' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
