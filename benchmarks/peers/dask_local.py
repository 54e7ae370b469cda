"""dask: trials are tasks in worker processes that stay."""

from __future__ import annotations

from distributed import Client, LocalCluster

from benchmarks.peers.answers import Answer, answer, rate

AT_ONCE = 3


def trial(x: float) -> float:
    """What a trial reports."""
    return x


def trials(count: int) -> Answer:
    """Trials a second, once the workers are there."""
    with (
        LocalCluster(n_workers=AT_ONCE, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(AT_ONCE)
        return rate(count, lambda: client.gather(client.map(trial, range(count), pure=False)))


if __name__ == "__main__":
    answer({"trials": trials})
