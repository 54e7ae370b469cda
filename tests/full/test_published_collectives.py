"""Collectives of real processes give the same with the published SDK of 0.25.0 and with ours."""

import json
import os
import subprocess
import sys

import pytest

from tests.fixtures.ports import reserved_port

SCRIPT = """
import json, sys
from determined import core

rank, size, per_node, port_1, port_2 = map(int, sys.argv[1:])
dist = core.DistributedContext(
    rank=rank, size=size, local_rank=rank % per_node, local_size=per_node, cross_rank=rank // per_node,
    cross_size=size // per_node, chief_ip="127.0.0.1", pub_port=port_1, pull_port=port_2,
)
ALL = ("gather", "gather_local", "allgather", "allgather_local", "broadcast", "broadcast_local")
VALUES = {
    "numbers": rank,
    "nothing": None,
    "uneven lists": list(range(rank * 3)),
    "uneven texts": "x" * (rank * 200_000),
    "bytes": bytes([rank]) * (1 << 20),
    "one empty": b"" if rank == 1 else {1: (2, {3})},
    "odd floats": [float("inf"), -0.0, 1e-320, complex(rank, 1)],
    "text": "\\u00e4\\U0001f600" * rank,
    "an error": ValueError("as it is", rank),
    "a class": dict if rank else list,
}

def short(value):
    text = repr(value)
    return text if len(text) < 200 else f"{len(text)}: {text[:20]} {text[-20:]}"

results = {"who it is": [dist.get_rank(), dist.get_local_rank(), dist.get_size(), dist.get_num_agents()]}
for name, value in VALUES.items():
    results[name] = {call: short(getattr(dist, call)(value)) for call in ALL}
own = [rank]
results["its own object"] = {
    "broadcast": dist.broadcast(own) is own, "broadcast_local": dist.broadcast_local(own) is own
}
results["without a value"] = dist.broadcast_local()
results["changed after it was sent"] = []
for step in range(300):
    own[0] = step * size + rank
    results["changed after it was sent"].append(dist.allgather(own) + dist.allgather_local(own))
    if step % 7 == 0:
        results["changed after it was sent"].append(dist.broadcast(own if rank == 0 else None))
results["changed after it was sent"] = json.loads(json.dumps(results["changed after it was sent"]))[-3:]
try:
    core.DistributedContext(
        rank=0, size=2, local_rank=None, local_size=None, cross_rank=None, cross_size=None
    )
except Exception as error:
    results["some numbers"] = type(error).__name__
try:
    core.DistributedContext(rank=0, size=2, local_rank=0, local_size=1, cross_rank=0, cross_size=2)
except BaseException as error:
    results["no chief"] = type(error).__name__
dist.allgather(None)
dist.close()
print(json.dumps(results))
"""


def results_of(python, size, per_node, folder):
    ports = [str(reserved_port()) for _ in range(2)]
    # The tests' own packages are not on the path of the published interpreter.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ranks = [
        subprocess.Popen(
            [python, "-c", SCRIPT, str(rank), str(size), str(per_node), *ports],
            env=environment,
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    try:
        printed = [rank.communicate(timeout=300)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0] * size
    return [json.loads(text) for text in printed]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("size", "per_node"), [(2, 2), (2, 1), (4, 4), (4, 2), (4, 1)])
def test_collectives_give_the_same(published, tmp_path, size, per_node):
    theirs = results_of(published.python, size, per_node, tmp_path)
    ours = results_of(sys.executable, size, per_node, tmp_path)
    differ = {
        (rank, name): (value, theirs[rank][name])
        for rank, results in enumerate(ours)
        for name, value in results.items()
        if value != theirs[rank][name]
    }
    assert differ == {}
