"""Counts in how many rounds a reaction or a due time is decided while others keep asking."""

from det_contracts.events import Decision
from services.kit.testing import strict_timers
from tests.simulation.violation import Violation

TURNS = 3
"""Commands, due times and reactions take turns, one round each."""


class Promptness:
    """Counts each owner's rounds that ignored something that was read and due for a decision.

    `most` such rounds are allowed; `longest` is the maximum seen.
    """

    def __init__(self, most=TURNS):
        self.longest = 0
        self._most = most
        self._waiting = {}
        """Per owner and record: the position of its last change, and the rounds since that was read."""
        self._due = {}

    def moved(self, owner, keys, position):
        """Note the records that an event has replaced."""
        for key in keys:
            self._waiting.setdefault(owner, {})[key] = [position, 0]

    def look(self, world, recorded):
        if type(recorded.event) is not Decision:
            return
        owner, folded = recorded.event.owner, recorded.event.seen
        if owner not in world.rules:
            # The intake admits facts and has no reactions.
            return
        rules, truth = world.rules[owner], world.truth[owner]
        for key, waiting in list(self._waiting.get(owner, {}).items()):
            if not rules.react(truth, key):
                del self._waiting[owner][key]
            elif waiting[0] <= folded:
                waiting[1] += 1
                self._check_rounds(waiting[1], f"{owner} decides nothing about {key}", recorded)
        self._check_timers(rules, truth, recorded)

    def _check_timers(self, rules, truth, recorded):
        due = strict_timers(rules).due(truth)
        previous_due, rounds = self._due.get(rules.owner, (None, 0))
        rounds = rounds + 1 if due == previous_due and due is not None and due <= recorded.at else 0
        self._due[rules.owner] = due, rounds
        self._check_rounds(rounds, f"{rules.owner} does not state that {due} has come", recorded)

    def _check_rounds(self, rounds, what, recorded):
        self.longest = max(self.longest, rounds)
        if rounds > self._most:
            raise Violation("nothing starves", f"{what} in {rounds} rounds", recorded.event)
