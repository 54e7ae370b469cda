"""Three real workers of four slots: what only real processes show.

Of the scenarios of `tests/simulation/test_scenarios.py` these two are played here too, the others in
`tests/full/test_cluster.py`. One shows what scripts on two hosts are told to find each other by: addresses,
ports, slots, a common token; and that a worker that starts again finds what it ran and follows it to its
end. The other freezes a worker's process: its connection stays, what it missed comes all at once, and what
others took over must be gone from its host, while the worker itself lives on.
"""

import os
import signal

import pytest

from det_contracts.events import worker
from tests.fixtures.lab import BATCHES, GIVEN_UP_SOON
from tests.fixtures.lab import lab as lab
from tests.fixtures.local_cluster import wait_for

pytestmark = pytest.mark.timeout(900)


def test_a_trial_of_eight_slots_spans_two_workers(lab):
    addresses = {name: f"127.0.0.{n}" for n, name in enumerate(lab.cluster.workers(), 2)}
    for name, address in addresses.items():
        lab.cluster.stop(name)
        lab.cluster.start(name, STEADFAST_WORKER_ADDRESS=address)
    wait_for(lambda: len(lab.events(worker.WorkerRegistered)) == 6, 60, "all workers to be back")
    experiment, (trial,) = lab.submit("wide", slots=8)
    chief, second = lab.script_info(trial, 1, 0), lab.script_info(trial, 1, 1)
    assert chief[0] == second[0] == [addresses[name] for name in lab.places(trial)[0]]
    assert (chief[1], second[1]) == (0, 1)
    assert chief[2] == second[2] == [4, 4]
    assert chief[3] == second[3] == [0, 1, 2, 3]
    assert chief[4:] == second[4:]
    lab.until_held(trial)
    again = lab.places(trial)[0][1]
    held = lab.processes(again)
    assert held
    lab.cluster.stop(again)
    lab.cluster.start(again, STEADFAST_WORKER_ADDRESS=addresses[again])
    wait_for(lambda: len(lab.events(worker.WorkerRegistered)) == 7, 60, "one of the two to be back")
    assert set(held) <= set(lab.processes(again))
    lab.open("wide")
    lab.finished(experiment)
    (place,) = lab.places(trial)
    assert len(set(place)) == 2
    assert lab.batches(trial) == list(range(1, BATCHES + 1))


@pytest.mark.full
@pytest.mark.parametrize("lab", [GIVEN_UP_SOON], indirect=True)
def test_a_worker_that_hung_for_too_long_gives_up_what_others_took_over(lab):
    experiment, (trial,) = lab.submit("hung", slots=8)
    lab.until_held(trial)
    hung = lab.places(trial)[0][0]
    pid = lab.cluster.pid(hung)
    os.kill(pid, signal.SIGSTOP)
    try:
        lab.script_info(trial, 2)
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_for(lambda: not lab.processes(hung), 60, "the old run to end")
    lab.open("hung")
    lab.finished(experiment)
    assert lab.outcomes(trial) == ["worker_lost", "succeeded"]
    wait_for(lambda: lab.here() == set(lab.cluster.workers()), 60, "the worker to be back")
    assert lab.cluster.pid(hung) == pid
