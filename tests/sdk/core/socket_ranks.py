"""Several ranks on one or more nodes, as threads of one process over real connections."""

import threading

from determined.core import DistributedContext
from tests.fixtures.ports import reserved_port

PATIENCE_S = 60


def numbers(rank, nodes, per_node):
    return {
        "rank": rank,
        "size": nodes * per_node,
        "local_rank": rank % per_node,
        "local_size": per_node,
        "cross_rank": rank // per_node,
        "cross_size": nodes,
    }


def run_ranks(body, nodes=1, per_node=2, **more):
    """Run `body(dist)` on every rank at once; returns by rank what each gave or raised."""
    port, size = reserved_port(), nodes * per_node
    outcomes = [None] * size

    def run_rank(rank):
        dist = None
        try:
            arguments = numbers(rank, nodes, per_node) | {"chief_ip": "127.0.0.1", "pub_port": port} | more
            dist = DistributedContext(**arguments)
            outcomes[rank] = body(dist)
        except Exception as error:
            outcomes[rank] = error
        finally:
            if dist is not None:
                dist.close()

    threads = [threading.Thread(target=run_rank, args=(rank,), daemon=True) for rank in reversed(range(size))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), f"a rank hangs; the ranks gave: {outcomes}"
    return outcomes
