"""Decodes each message once, for all replicas that fold it."""

import copy
import dataclasses

import msgspec

from det_contracts import subjects
from det_contracts.envelope import PassedOver, Unknown
from services.kit.records import read_event
from services.kit.service_events import KINDS
from tests.simulation.violation import Violation


class SharedDecoder:
    """The decoded messages of one world.

    Records are frozen, so replicas may share them; `decode_again` finds a fold that changed one anyway.
    """

    def __init__(self):
        self._decoded = {stream: {} for stream in subjects.STREAM_SUBJECTS}
        self._event = self._reader(read_event, subjects.CONTROL)

    def shared(self, rules):
        """The rules of a service, with readers that decode no message twice."""
        read = {stream: self._reader(read, stream) for stream, read in rules.decode.items()}

        def read_control(message, stream):
            recorded = self._event(message, stream)
            kind = type(recorded.event)
            # Asked each time, because a world may poison what the rules read.
            if shared.reads is None or kind is Unknown or kind in shared.reads or kind in KINDS:
                return recorded
            return PassedOver(recorded.witness)

        shared = dataclasses.replace(rules, decode=read | {subjects.CONTROL: read_control})
        return shared

    def _reader(self, read, stream):
        decoded = self._decoded[stream]

        def decode_once(message, stream):
            there = decoded.get(message.position)
            if there is None or there[0] is not message:
                there = decoded[message.position] = message, read(message, stream)
            return there[1]

        def decode_once_and_copy(message, stream):
            recorded = decode_once(message, stream)
            # The fold stores its verdict beside a batch of reports or lines.
            return msgspec.structs.replace(recorded, event=copy.copy(recorded.event))

        return decode_once if stream == subjects.CONTROL else decode_once_and_copy

    def event(self, message):
        """A message of CONTROL."""
        return self._event(message, subjects.CONTROL)

    def decode_again(self, messages):
        """All of CONTROL, decoded again; raises `Violation` if somebody has changed a decoded record."""
        for message in messages:
            shared, fresh = self.event(message), read_event(message, subjects.CONTROL)
            if shared != fresh:
                raise Violation("what was read stays as it is", f"{shared} was {fresh}", fresh.event)
            yield fresh
