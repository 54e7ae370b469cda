"""How a failure is reported."""


class Violation(Exception):
    """An invariant does not hold."""

    def __init__(self, name, text, event=None):
        super().__init__(f"{name}: {text}")
        self.name = name
        self.event = event
