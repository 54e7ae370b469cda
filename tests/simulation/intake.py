"""The intake: the real relay, in a process that can die, be stopped, or wrongly believe that it leads."""

from types import SimpleNamespace

from det_contracts import subjects
from services.intake.relay import Relay
from tests.simulation.line import Line
from tests.simulation.replica import NO_METRICS, why
from tests.simulation.stopping import Process
from tests.simulation.violation import Violation

OWNER = SimpleNamespace(owner=subjects.INTAKE)


class Intake:
    """One replica. It has no database and answers no commands."""

    answers = False

    def __init__(self, world, number):
        self.name = f"intake-{number}"
        self.rules = OWNER
        self.leads = False
        self.ahead_s = 0.0
        self.relay = None
        self._world = world
        self._task = None
        self.process = Process()

    @property
    def up(self):
        return self.relay is not None

    def start(self):
        world = self._world
        self.process = Process()
        self.line = Line(world.disk, world.chance, world.plan_now, world.tell, self._on_closed)
        self.relay = Relay(
            self.line,
            is_leader=lambda: self.leads,
            clock=lambda: world.clock() + self.ahead_s,
            new_id=world.new_id,
            replica=self.name,
            measures=NO_METRICS,
        )
        self._task = self.process.run(self.relay.run())
        self._task.add_done_callback(self._on_task_done)

    def _on_closed(self, reason):
        self._world.fail(Violation("nobody sends what the broker does not take", f"{self.name}: {reason}"))

    def _on_task_done(self, task):
        if not task.cancelled() and task.exception() is not None:
            self._world.fail(Violation("services stay up", f"{self.name}: {why(task.exception())}"))

    def lead(self, leads):
        self.leads = leads
        if self.up:
            self.relay.on_leadership_change()

    def crash(self):
        """Die at any point."""
        self._task.remove_done_callback(self._on_task_done)
        self._task.cancel()
        self.process.resume()
        self.relay = None

    end = crash
