"""Stage 1: report metrics. Also runs on its own: `python 1_metrics.py` logs what it would report."""

import logging
import time

import determined as det


def main(core_context: det.core.Context, growth: int) -> None:
    weight = 0
    for step in range(1, 51):
        weight += growth
        time.sleep(0.05)
        if step % 5 == 0:
            core_context.train.report_training_metrics(step, {"weight": weight})
    core_context.train.report_validation_metrics(50, {"weight": weight})


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    with det.core.init() as core_context:
        main(core_context, growth=1)
