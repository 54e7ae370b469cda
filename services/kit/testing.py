"""A harness for a service's rules: given these events, expect those."""

from __future__ import annotations

from typing import Any

from det_contracts.envelope import Recorded
from services.kit.rules import Call, Key, Rules, Ruling, every_key, record_types


class Fold:
    """Folds events through a service's rules, and its own decisions after them, without any I/O."""

    def __init__(self, rules: Rules[Any]) -> None:
        self.rules = rules
        self.state = rules.state()
        self.now = 1_000_000.0
        self.decided: list[Any] = []
        self._position = 0
        self._tables = list(record_types(rules.state))
        self._touched: dict[Key, None] = dict.fromkeys(every_key(self.state))

    def given(self, *events: Any, stream: str = "CONTROL") -> Fold:
        """Fold events that somebody else stated, or that were decided earlier."""
        for event in events:
            self._position += 1
            recorded = Recorded(self._position, event, f"e{self._position}", "test", self.now, "", stream)
            self._touched.update(dict.fromkeys(self._evolve(recorded)))
        return self

    def _evolve(self, recorded: Recorded) -> list[Key]:
        """Fold one event; fails where a record is replaced that is not named: it would not be saved."""
        before = {name: dict(getattr(self.state, name)) for name in self._tables}
        keys = list(self.rules.evolve(self.state, recorded))
        named = set(keys)
        for name, old in before.items():
            new = getattr(self.state, name)
            changed = [k for k in {**old, **new} if old.get(k) is not new.get(k) and old.get(k) != new.get(k)]
            unnamed = [key for key in changed if (name, key) not in named]
            if unnamed:
                raise AssertionError(f"{recorded.event} changes {name} {unnamed}, and does not say so")
        return keys

    def decide(self) -> list[Any]:
        """React until the state is at rest, folding each decision back; returns what was decided."""
        decided: list[Any] = []
        while self._touched:
            key = next(iter(self._touched))
            events = list(self.rules.react(self.state, key))
            if not events:
                del self._touched[key]
            self.given(*events)
            decided += events
        self.decided += decided
        return decided

    def rule(self, command: Any) -> Ruling:
        """Rule on a command and fold what it leads to; raises `Refused`."""
        call = Call(f"c{self._position}", self.now)
        # Whether this user may ask for it is tried by itself: here rules are tried.
        rule = self.rules.commands[type(command)]
        ruling: Ruling = getattr(rule, "__wrapped__", rule)(self.state, command, call)
        self.given(*ruling.events)
        return ruling

    def pass_time(self, seconds: float) -> list[Any]:
        """Let the clock move; returns the facts about due times, folded."""
        self.now += seconds
        due = self.rules.due(self.state)
        late = due is not None and due <= self.now
        facts = list(self.rules.expire(self.state, self.now)) if late else []
        self.given(*facts)
        return facts
