"""Events of the archive: which parts of the log are also stored outside the broker."""

from __future__ import annotations

import msgspec

from det_contracts.codec import event


@event("archive.segment_sealed", key="stream")
class SegmentSealed(msgspec.Struct, frozen=True, kw_only=True):
    """A closed range of a stream is stored in the archive, and has been read back and verified.

    Sent by the archive, fenced on the previous one. It is the head of a hash chain: its digest covers the
    segment's header, which contains the digests of the content and of the previous header. All owners listen:
    an owner without a decision after that range makes an empty one, because messages before the newest
    decisions of all owners may then be removed from the broker.
    """

    stream: str
    """`CONTROL`."""
    first: int
    """Position of the first message."""
    last: int
    """Position of the last message. There are no gaps in between."""
    header: str
    """SHA-256 of the segment's header, under which it is stored in the archive."""
    size: int
    """Size of the compressed content in bytes."""
    reason: str = ""
