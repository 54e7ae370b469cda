"""A second worker with the id of one that is there: refused by the real log, and told what to do."""

import subprocess

from services.local.supervisor import Cluster


def test_a_second_worker_with_the_id_of_one_that_is_there_is_refused(cluster, tmp_path):
    (id,) = cluster.workers()
    program = Cluster(cluster.home.plan(), cluster.home).worker(id)
    environment = {k: v for k, v in program.environment.items() if k != "STEADFAST_HEALTH_PORT"}
    environment |= {"STEADFAST_WORKER_HOME": str(tmp_path), "STEADFAST_LOG_FORMAT": "json"}
    done = subprocess.run(
        program.command, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 1
    assert f"the worker id '{id}' is taken: another worker has it, on host " in done.stdout + done.stderr
    assert [agent["id"] for agent in cluster.get("agents")["agents"]] == [id]
