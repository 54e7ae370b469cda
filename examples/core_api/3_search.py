"""Stage 3: a search decides how long to train, and with which hyperparameters."""

import json
import logging
import pathlib
import time

import determined as det


def save(core_context: det.core.Context, weight: float, step: int) -> None:
    with core_context.checkpoint.store_path({"steps_completed": step}) as (path, _):
        (path / "state.json").write_text(json.dumps({"weight": weight, "step": step}))


def load(folder: pathlib.Path) -> tuple[float, int]:
    state = json.loads((pathlib.Path(folder) / "state.json").read_text())
    return state["weight"], state["step"]


def main(core_context: det.core.Context, info: det.ClusterInfo, growth: float) -> None:
    weight, step = 0.0, 0
    if info.latest_checkpoint is not None:
        with core_context.checkpoint.restore_path(info.latest_checkpoint) as path:
            weight, step = load(path)
    # Lengths are absolute: a trial that is extended from 4 to 16 trains 12 more steps.
    for op in core_context.searcher.operations():
        while step < op.length:
            step += 1
            weight += growth * (1 - weight / 100)
            time.sleep(0.02)
            core_context.train.report_training_metrics(step, {"weight": weight})
            op.report_progress(step)
            if core_context.preempt.should_preempt():
                save(core_context, weight, step)
                return
        save(core_context, weight, step)
        core_context.train.report_validation_metrics(step, {"weight": weight})
        op.report_completed(weight)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    info = det.get_cluster_info()
    assert info is not None, "run this one on a cluster: det e create 3_search.yaml . -f"
    with det.core.init() as core_context:
        main(core_context, info, growth=info.trial.hparams["growth"])
