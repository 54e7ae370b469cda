"""Rate limiting with a burst size and a long-term rate (a token bucket)."""


class Budget:
    """A token bucket.

    Example:
        >>> budget = Budget(2, per_s=1.0)
        >>> [budget.spend(now) for now in (0.0, 0.0, 0.5, 1.5)]
        [True, True, False, True]
    """

    def __init__(self, most: int, per_s: float) -> None:
        """Allow `most` at once, refilled at `per_s` per second."""
        self._most, self._per_s = float(most), per_s
        self._left, self._at = float(most), 0.0

    def spend(self, now: float) -> bool:
        """Take a token and return whether there was one. `now` is in seconds of a monotonic clock."""
        self._left = min(self._most, self._left + (now - self._at) * self._per_s)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
