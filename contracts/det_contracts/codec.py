"""Converts events to bytes and back, using stable names and versions.

A name once used is never reused. A record may get a field with a default: older data is read with the
default, and older releases ignore the field. For any other change its version is incremented, and an upcaster
converts old data (a plain dict) to the next version, so that all history stays readable.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, TypeVar

import msgspec

from det_contracts import subjects
from det_contracts.envelope import Envelope, PassedOver, Recorded, Unknown
from det_contracts.limits import STATED_BYTES
from det_contracts.nesting import is_too_deep

E = TypeVar("E", bound=type[msgspec.Struct])
Upcaster = Callable[[dict[str, Any]], dict[str, Any]]


class Kind(msgspec.Struct, frozen=True):
    """The registration of one event."""

    name: str
    version: int
    key: str
    record: type[msgspec.Struct]
    before: str
    """Its subject as far as the id, which is followed by `after`."""
    after: str

    def subject_of(self, record: object) -> str:
        """Return the subject an event of this kind is published to."""
        return f"{self.before}{getattr(record, self.key)}{self.after}"


class BadRecord(Exception):
    """A log message cannot be read: it is damaged, or its version has no upcaster."""


DECISION = "decision"
"""The record that leads each batch. It has no aggregate, and one subject per owner."""
DAMAGED = "damaged"
"""Event name for messages that no reader can decode."""

_ID = "{id}"
_NOT_DECODED = PassedOver()
_UNREADABLE = (msgspec.MsgspecError, UnicodeError, KeyError, TypeError, RecursionError)

_by_name: dict[str, Kind] = {}
_by_record: dict[type, Kind] = {}
_upcasters: dict[tuple[str, int], Upcaster] = {}
_decoders: dict[str, Callable[[msgspec.Raw], Any]] = {}
_envelopes = msgspec.json.Decoder(Envelope)
_encode = msgspec.json.Encoder().encode


def event(name: str, *, key: str, version: int = 1) -> Callable[[E], E]:
    """Register a record as an event. `key` names the field whose value is the id in the subject."""

    def register(record: E) -> E:
        if name in _by_name:
            raise ValueError(f"event name '{name}' is taken by {_by_name[name].record.__name__}")
        subject = subjects.decision(_ID) if name == DECISION else subjects.control(name, _ID)
        before, after = subject.split(_ID)
        kind = Kind(name, version, key, record, before, after)
        _by_name[name] = _by_record[record] = kind
        _decoders[name] = msgspec.json.Decoder(record).decode
        return record

    return register


def upcast(name: str, from_version: int) -> Callable[[Upcaster], Upcaster]:
    """Register a function that converts data of `from_version` to the next version."""

    def register(function: Upcaster) -> Upcaster:
        _upcasters[name, from_version] = function
        return function

    return register


def kinds() -> list[Kind]:
    """Return all registered events, sorted by name."""
    return [_by_name[name] for name in sorted(_by_name)]


def kind_of(record: object) -> Kind:
    """Return the registration of an event's record. Raises KeyError for anything else."""
    return _by_record[type(record)]


def name_of(kind: type) -> str:
    """The stable name of a kind of event; raises KeyError for anything else."""
    return _by_record[kind].name


def subject_of(record: object) -> str:
    """Return the subject an event is published to."""
    return _by_record[type(record)].subject_of(record)


def encode(record: object, *, id: str, actor: str, at: float, cause: str = "") -> bytes:
    """Encode an event for the log. `at` is in seconds since the epoch."""
    kind = _by_record[type(record)]
    # `Raw` keeps the data as bytes in the envelope, so that the intake and the archive pass events on that
    # they cannot decode.
    return _encode(Envelope(id, kind.name, kind.version, actor, at, cause, msgspec.Raw(_encode(record))))


def decode_envelope(body: bytes) -> Envelope:
    """Decode the envelope of an event. Raises `BadRecord` if there is none."""
    try:
        return _envelopes.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise BadRecord(f"it cannot be read: {error}") from error


def decode_event(envelope: Envelope) -> Any:
    """Return the event in an envelope, or `Unknown` for a newer version.

    Raises `BadRecord` if it is invalid.
    """
    try:
        return _record(envelope)
    except _UNREADABLE as error:
        raise BadRecord(f"{envelope.name} cannot be read: {error}") from error


def encode_envelope(envelope: Envelope) -> bytes:
    """Encode an envelope for the log."""
    return _encode(envelope)


def decode(body: bytes, position: int, stream: str = subjects.CONTROL) -> Recorded:
    """Decode an event of the log. Raises `BadRecord`, naming the position, if it cannot be read."""
    try:
        envelope = _envelopes.decode(body)
        event = _record(envelope)
    except _UNREADABLE as error:
        raise BadRecord(f"message {position} of {stream} cannot be read: {error}") from error
    return _recorded(envelope, event, position, stream)


def read(subject: str, body: bytes, position: int, stream: str = subjects.CONTROL) -> Recorded:
    """Decode a message on a subject of the log. No content can stop a reader.

    Returns `Unknown` for a message that is damaged, larger than allowed, of a newer version, or not on its
    event's subject. All readers skip the same bytes, always.
    """
    try:
        return _read(subject, _checked_envelope(subject, body), position, stream)
    except _UNREADABLE:
        return _damaged(subject, position, stream)


def read_if(
    kinds: Container[type], subject: str, body: bytes, position: int, stream: str = subjects.CONTROL
) -> Recorded | PassedOver:
    """Decode a message if it is an event of one of these kinds, or none that is known; see `read`.

    What is passed over may be invalid in what it says, but not in its envelope, its version or its subject.
    """
    try:
        envelope = _checked_envelope(subject, body)
        kind = _by_name.get(envelope.name)
        if (
            kind is not None
            and kind.record not in kinds
            and envelope.version <= kind.version
            and subject.startswith(kind.before)
            and subject.endswith(kind.after)
        ):
            return PassedOver(envelope.witness) if envelope.witness else _NOT_DECODED
        return _read(subject, envelope, position, stream)
    except _UNREADABLE:
        return _damaged(subject, position, stream)


def _checked_envelope(subject: str, body: bytes) -> Envelope:
    # Only facts of scripts, since all other subjects are written by services that have checked it. It is
    # checked before decoding, because a decoder that fails halfway might fail differently in another version.
    if subjects.is_fact_of_script(subject) and (len(body) > STATED_BYTES or is_too_deep(body)):
        raise msgspec.ValidationError("it is too large, or nests too deep")
    return _envelopes.decode(body)


def _damaged(subject: str, position: int, stream: str) -> Recorded:
    # No text of the error: it may differ between versions of the decoder, and what is folded must not.
    return Recorded(position, Unknown(DAMAGED, 0, subject), "", "", 0.0, "", stream)


def _read(subject: str, envelope: Envelope, position: int, stream: str) -> Recorded:
    event = _record(envelope)
    # A script may write only to its own subject, so an event of another trial or owner there is a forgery.
    if type(event) is not Unknown and subject != _by_record[type(event)].subject_of(event):
        event = Unknown(f"misplaced {type(event).__name__}", 0, subject)
    return _recorded(envelope, event, position, stream)


def _recorded(envelope: Envelope, event: Any, position: int, stream: str) -> Recorded:
    return Recorded(
        position, event, envelope.id, envelope.actor, envelope.at, envelope.cause, stream, envelope.witness
    )


def _record(envelope: Envelope) -> Any:
    kind = _by_name.get(envelope.name)
    if kind is None or envelope.version > kind.version:
        # Written by a newer release while both run, as during an update.
        return Unknown(envelope.name, envelope.version)
    if envelope.version == kind.version:
        return _decoders[envelope.name](envelope.data)
    data = msgspec.json.decode(envelope.data)
    for version in range(envelope.version, kind.version):
        data = _upcasters[envelope.name, version](data)
    return msgspec.convert(data, kind.record)
