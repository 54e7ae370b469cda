"""A test harness for a service's rules: given some events, check which events follow."""

from __future__ import annotations

from typing import Any

from det_contracts.envelope import Recorded
from services.kit.rules import Call, Key, Result, Rules, every_key, record_types
from services.kit.timers import Timers


def strict_timers(rules: Rules[Any]) -> Timers[Any]:
    """The timers of some rules, none of which may fail."""

    def fail(key: Key, reason: str) -> None:
        raise AssertionError(f"{key}: {reason}")

    return Timers(rules, fail)


class Fold:
    """Folds events, and the decisions that follow from them, through a service's rules without any I/O."""

    def __init__(self, rules: Rules[Any]) -> None:
        self.rules = rules
        self.state = rules.state()
        self.timers = strict_timers(rules)
        self.now = 1_000_000.0
        self.decided: list[Any] = []
        self._position = 0
        self._tables = list(record_types(rules.state))
        self._touched: dict[Key, None] = dict.fromkeys(every_key(self.state))

    def apply(self, *events: Any, stream: str = "CONTROL") -> Fold:
        """Fold events that another service stated or that were decided earlier."""
        for event in events:
            self._position += 1
            recorded = Recorded(self._position, event, f"e{self._position}", "test", self.now, "", stream)
            self._touched.update(dict.fromkeys(self._evolve(recorded)))
        return self

    def _evolve(self, recorded: Recorded) -> list[Key]:
        """Fold one event.

        Fails if it replaces a record without naming it, because that would not be saved.
        """
        before = {name: dict(getattr(self.state, name)) for name in self._tables}
        keys = list(self.rules.evolve(self.state, recorded))
        named = set(keys)
        for name, old in before.items():
            new = getattr(self.state, name)
            changed = [k for k in {**old, **new} if old.get(k) is not new.get(k) and old.get(k) != new.get(k)]
            unnamed = [key for key in changed if (name, key) not in named]
            if unnamed:
                raise AssertionError(f"{recorded.event} changes {name} {unnamed}: not named by evolve")
        return keys

    def decide(self) -> list[Any]:
        """React until nothing is left to decide, folding each decision back. Returns the decisions."""
        decided: list[Any] = []
        while self._touched:
            key = next(iter(self._touched))
            events = list(self.rules.react(self.state, key))
            if not events:
                del self._touched[key]
            self.apply(*events)
            decided += events
        self.decided += decided
        return decided

    def rule(self, command: Any) -> Result:
        """Decide a command and fold its events. Raises `Refused`."""
        call = Call(f"c{self._position}", self.now)
        # Skip the permission check, which has its own tests.
        rule = self.rules.commands[type(command)]
        result: Result = getattr(rule, "__wrapped__", rule)(self.state, command, call)
        self.apply(*result.events)
        return result

    def pass_time(self, seconds: float) -> list[Any]:
        """Advance the clock. Returns the folded facts about due times."""
        self.now += seconds
        facts = [fact for _, fact in self.timers.facts(self.state, self.now)]
        self.apply(*facts)
        return facts
