"""Stage 2: save checkpoints, and resume after a pause or a failure, or in another trial."""

import json
import logging
import pathlib
import time

import determined as det


def save(folder: pathlib.Path, weight: int, step: int, trial_id: int) -> None:
    (folder / "state.json").write_text(json.dumps({"weight": weight, "step": step, "trial": trial_id}))


def load(folder: pathlib.Path, trial_id: int) -> tuple[int, int]:
    """Weight and step of a checkpoint; another trial's checkpoint gives its weight and begins at step 0."""
    state = json.loads((pathlib.Path(folder) / "state.json").read_text())
    return state["weight"], state["step"] if state["trial"] == trial_id else 0


def main(core_context: det.core.Context, info: det.ClusterInfo, growth: int) -> None:
    trial_id = info.trial.trial_id
    weight, done = 0, 0
    if info.latest_checkpoint is not None:
        with core_context.checkpoint.restore_path(info.latest_checkpoint) as path:
            weight, done = load(path, trial_id)
    for step in range(done + 1, 51):
        weight += growth
        # Slow enough to be paused by hand.
        time.sleep(0.2)
        if step % 5 == 0:
            core_context.train.report_training_metrics(step, {"weight": weight})
            with core_context.checkpoint.store_path({"steps_completed": step}) as (path, _):
                save(path, weight, step, trial_id)
            # Paused, or work of higher priority needs the slot. All is saved, so exit.
            if core_context.preempt.should_preempt():
                return
    core_context.train.report_validation_metrics(50, {"weight": weight})


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    info = det.get_cluster_info()
    assert info is not None, "run this one on a cluster: det e create 2_checkpoints.yaml . -f"
    with det.core.init() as core_context:
        main(core_context, info, growth=1)
