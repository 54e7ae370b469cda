"""How often something may be done: so often at once, and so often in the long run."""


class Budget:
    """A number of times that grows back.

    Example:
        >>> budget = Budget(2, per_s=1.0)
        >>> [budget.spend(now) for now in (0.0, 0.0, 0.5, 1.5)]
        [True, True, False, True]
    """

    def __init__(self, most: int, per_s: float) -> None:
        """`most` times at once; `per_s` times more every second."""
        self._most, self._per_s = float(most), per_s
        self._left, self._at = float(most), 0.0

    def spend(self, now: float) -> bool:
        """Whether it may be done now, once; `now` in seconds of a clock that never goes back."""
        self._left = min(self._most, self._left + (now - self._at) * self._per_s)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
