"""The live channel: tells pages which of the things that they look at have changed.

It says *that*, not *what*: pages ask again by the REST API, so there is one truth and any replica can serve
anybody. What changes often is told at most ten times a second; a reader that is slow gets less, not late.
"""

from services.live.channel import Live

__all__ = ["Live"]
