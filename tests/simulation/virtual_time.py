"""Runs services by the clock of the simulation: in them, nothing reads the time or writes to a terminal."""

from contextlib import ExitStack
from types import SimpleNamespace
from unittest import mock

from services.intake import relay
from services.kit import decider, listening, pager, runner, saved_portions, snapshot_store, suspension
from services.metrics import settling
from services.provisioner import reconciliation
from services.scheduler import heartbeats, orders
from tests.simulation.fake_database import FakeSnapshot
from tests.simulation.limits import limits_in_force
from tests.simulation.replica import NO_METRICS
from worker import fact_outbox, last_contact, registration

EPOCH = 1_700_000_000.0
POLL_EVERY_S = 4.0
ROOM = 6
"""Keep few inactive records in memory, so that most of what is looked up again comes from the shelf."""


UNMEASURED = SimpleNamespace(monotonic=float, perf_counter=float)
"""For what takes real time only: a save that a busy machine interrupts must not delay the next one."""


class NeverBehind:
    """Nobody asks a simulated saver how far it is behind, since that is measured in real time."""

    allowed_s = 0.0

    def set_total(self, total):
        pass

    def set_done(self, total):
        pass

    def restart_age(self):
        pass


def virtual_time(loop_time, plan):
    """Patches everything in the services that reads a clock or writes to a terminal."""
    clock = SimpleNamespace(monotonic=loop_time, time=lambda: EPOCH + loop_time())
    stack = ExitStack()
    ids = plan.chance("ids")
    stack.enter_context(limits_in_force(plan.limits))
    for target, name, value in (
        (listening, "time", clock),
        (heartbeats, "since_boot", loop_time),
        (heartbeats, "POLL_EVERY_S", POLL_EVERY_S),
        (orders, "POLL_EVERY_S", POLL_EVERY_S),
        (orders, "log", NO_METRICS),
        (registration, "log", NO_METRICS),
        (fact_outbox, "new_id", lambda: f"{ids.getrandbits(128):032x}"),
        (last_contact, "since_boot", loop_time),
        (settling, "time", clock),
        (settling, "POLL_EVERY_S", POLL_EVERY_S),
        (snapshot_store, "time", UNMEASURED),
        (snapshot_store, "SAVE_EVERY_S", POLL_EVERY_S),
        (saved_portions, "Lag", NeverBehind),
        (snapshot_store, "Snapshot", lambda owner, state, fold_version: FakeSnapshot(state)),
        (pager, "MAX_IDLE_RECORDS", ROOM),
        (suspension, "TICK_S", POLL_EVERY_S),
        # So that reports are announced in portions.
        (reconciliation, "MAX_WORKERS_PER_REPORT", 2),
        (decider, "log", NO_METRICS),
        (runner, "log", NO_METRICS),
        (relay, "log", NO_METRICS),
    ):
        stack.enter_context(mock.patch.object(target, name, value))
    return stack
