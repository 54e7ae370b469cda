"""The live channel: tells pages which of the things they look at have changed.

It says *that* something changed, not *what*: pages ask again through the REST API, so there is one source of
truth and any replica can serve any page. Frequent changes are reported at most ten times a second; a slow
reader gets fewer notifications, not late ones.
"""

from services.live.channel import Live

__all__ = ["Live"]
