"""What the archive states: which part of the log lies outside of the broker, too."""

from __future__ import annotations

import msgspec

from det_contracts.codec import event


@event("archive.segment_sealed", key="stream")
class SegmentSealed(msgspec.Struct, frozen=True, kw_only=True):
    """A closed range of a stream lies in the archive, read back and found whole.

    Sent by the archive, fenced on the one before. It is the head of a chain: its digest vouches for the
    header of the segment, which names the digests of its content and of the header before it. Listened to by
    all owners: whoever made no decision behind that range makes an empty one, as what lies before all
    owners' newest decisions may then be removed from the broker.
    """

    stream: str
    """`CONTROL`."""
    first: int
    """Position of its first message."""
    last: int
    """Position of its last one; there are no holes between."""
    header: str
    """SHA-256 of the segment's header, under which that lies in the archive."""
    size: int
    """Bytes of its compressed content."""
    reason: str = ""
