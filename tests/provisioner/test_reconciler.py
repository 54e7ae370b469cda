"""What a replica says of its pools while it leads, and that it says nothing of them afterwards."""

import asyncio

from services.provisioner.engines.protocol import EngineUnavailable
from services.provisioner.reconciler import Reconciler
from tests.fixtures.waiting import until


class Away:
    """An engine that does not answer."""

    async def list_workers(self):
        raise EngineUnavailable("no answer")

    async def wait_for_change(self):
        await asyncio.Event().wait()


class Scheduler:
    """Takes every report."""

    async def command(self, command):
        return None


def test_who_no_longer_leads_reports_no_problem_of_a_pool():
    async def work():
        leaders = {"this one"}
        reconciler = Reconciler(
            {"a": Away()}, Scheduler(), poll_s=0.01, is_leader=lambda: "this one" in leaders
        )
        running = asyncio.create_task(reconciler.run())
        await until(lambda: reconciler.problems == {"a": "no answer"})
        leaders.clear()
        await until(lambda: not reconciler.problems)
        leaders.add("this one")
        await until(lambda: reconciler.problems == {"a": "no answer"})
        running.cancel()
        await asyncio.wait([running])

    asyncio.run(work())
