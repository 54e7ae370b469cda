"""Stage 4: several processes grow one weight together; the script starts them itself."""

import json
import logging
import pathlib
import subprocess
import sys
import time

import determined as det


def launch(info: det.ClusterInfo) -> int:
    """Start this script once per slot of the node; end all of them if one fails."""
    slots = len(info.slot_ids)
    workers = []
    for local_rank in range(slots):
        rank = str(info.container_rank * slots + local_rank)
        # wrap_rank puts [rank=N] before each line, for the log's filter.
        wrapped = ["python3", "-m", "determined.launch.wrap_rank", rank, "--"]
        workers.append(subprocess.Popen([*wrapped, "python3", __file__, "worker", rank, str(local_rank)]))
    first_failure = 0
    while workers:
        time.sleep(0.1)
        for worker in [w for w in workers if w.poll() is not None]:
            workers.remove(worker)
            if worker.returncode and not first_failure:
                first_failure = worker.returncode
                for other in workers:
                    other.kill()
    return first_failure


def save(core_context: det.core.Context, weight: float, step: int) -> None:
    # NEW: only the chief saves and reports.
    if core_context.distributed.rank == 0:
        with core_context.checkpoint.store_path({"steps_completed": step}) as (path, _):
            (path / "state.json").write_text(json.dumps({"weight": weight, "step": step}))


def load(folder: pathlib.Path) -> tuple[float, int]:
    state = json.loads((pathlib.Path(folder) / "state.json").read_text())
    return state["weight"], state["step"]


def main(core_context: det.core.Context, info: det.ClusterInfo, growth: float) -> None:
    chief = core_context.distributed.rank == 0
    weight, step = 0.0, 0
    if info.latest_checkpoint is not None:
        with core_context.checkpoint.restore_path(info.latest_checkpoint) as path:
            weight, step = load(path)
    for op in core_context.searcher.operations():
        while step < op.length:
            step += 1
            # NEW: the sum over all processes.
            weight += sum(core_context.distributed.allgather(growth))
            time.sleep(0.05)
            if chief:
                logging.info("step %d: weight %g", step, weight)
                core_context.train.report_training_metrics(step, {"weight": weight})
                op.report_progress(step)
            # All processes call this at the same step, and get the same answer.
            if core_context.preempt.should_preempt():
                save(core_context, weight, step)
                logging.info("left at step %d", step)
                return
        save(core_context, weight, step)
        if chief:
            core_context.train.report_validation_metrics(step, {"weight": weight})
            op.report_completed(weight)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    info = det.get_cluster_info()
    assert info is not None, "run this one on a cluster: det e create 4_distributed.yaml . -f"
    if sys.argv[1] == "launcher":
        sys.exit(launch(info))
    slots, nodes = len(info.slot_ids), len(info.container_addrs)
    distributed = det.core.DistributedContext(
        rank=int(sys.argv[2]),
        size=nodes * slots,
        local_rank=int(sys.argv[3]),
        local_size=slots,
        cross_rank=info.container_rank,
        cross_size=nodes,
        chief_ip=info.container_addrs[0],
    )
    with det.core.init(distributed=distributed) as core_context:
        main(core_context, info, growth=info.trial.hparams["growth"])
