"""A log with an archive, in memory and a folder; and the ways in which either fails."""

from pathlib import Path

from det_contracts import codec, subjects
from det_contracts.events import Decision, metrics, trial
from services.archive.cutting import Cutter, Limits
from services.archive.sealing import Sealer
from services.kit.archive.log import ArchivedLog
from services.kit.archive.segments import Segments
from services.kit.blobs import DirectoryBlobs
from services.kit.log import Draft, Fence
from services.kit.log_memory import MemoryLog

OWNER = "toy"
NOW = 2_000_000_000.0


def draft(event, id, at=0.0):
    return Draft(codec.subject_of(event), codec.encode(event, id=id, actor="t", at=at), id)


def progressed(trial_id, units):
    return draft(trial.Progressed(trial_id, 1, float(units)), f"progress-{trial_id}-{units}")


def settled(trial_id, id):
    return draft(metrics.Settled(trial_id=trial_id, reason="asked"), f"settled-{id}")


def decision(owner=OWNER, to=0, position=0):
    return draft(Decision(owner, position, 0, "replica", to), f"{owner}-decided-{to}-{position}")


class Place:
    """One log, its archive, and who works on it."""

    def __init__(self, folder: Path, count=10, keep_events=0, keep_s=0.0, owners=(), stream=None):
        self.folder = folder
        self.stream = stream or MemoryLog()
        self.blobs = DirectoryBlobs(folder)
        self.limits = Limits(keep_s=keep_s, keep_events=keep_events)
        self.owners = owners
        self.count = count

    @property
    def segments(self):
        """As a process sees them that has just begun."""
        return Segments(self.blobs)

    @property
    def log(self):
        return ArchivedLog(self.stream, self.segments)

    @property
    def sealer(self):
        ids = iter(f"sealed-{n}-{len(self.stream.streams[subjects.CONTROL])}" for n in range(10**6))
        return Sealer(self.stream, self.segments, count=self.count, clock=lambda: NOW, new_id=ids.__next__)

    @property
    def cutter(self):
        return Cutter(
            self.stream, self.sealer, self.segments, self.limits, owners=self.owners, clock=lambda: NOW
        )

    async def fill(self, count, trials=7):
        """State progress of some trials, in turn."""
        for _ in range(count):
            number = len(self.stream.streams[subjects.CONTROL])
            await self.stream.append(progressed(number % trials + 1, number))

    async def seal(self):
        """Seal all that there is to seal; returns the headers."""
        sealer, headers = self.sealer, []
        while (header := await sealer.seal()) is not None:
            headers.append(header)
        return headers

    async def decide(self, owner, to=0, position=0):
        """Have an owner make a decision, as the broker lets it."""
        subject = subjects.decision(owner)
        newest = await self.stream.last(subject)
        fence = Fence(subject, newest.position if newest else 0)
        await self.stream.append_batch([decision(owner, to, position)], fence=fence)

    def whole(self):
        """Everything that was ever stored."""
        return list(self.stream.streams[subjects.CONTROL])

    def files(self):
        """All blobs of the archive."""
        return sorted(path for path in self.folder.rglob("*") if path.is_file())
