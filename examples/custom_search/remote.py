"""The same search, run by a task on the cluster: `det e create remote.yaml .`"""

import logging

from search import Halving

from determined import core, searcher

logging.basicConfig(level=logging.INFO, format="%(message)s")
with core.init() as context:
    runner = searcher.RemoteSearchRunner(Halving(), context)
    id = runner.run("config.yaml", model_dir="model")
    print(f"experiment {id} is over")
    for operation in context.searcher.operations():
        operation.report_completed(0.0)
