"""The gateway: its rules run like those of other services, and its read side serves clients."""

from det_contracts import commands, subjects
from det_contracts.commands import Answer
from det_contracts.problems import unavailable
from det_contracts.queries import LogPage
from services.catalogue.catalogue import Catalogue
from services.catalogue.log_end import LogEnd
from services.catalogue.peers import Peers
from services.gateway.app import RULES
from services.live import Live
from services.live.follow import FollowerResources
from services.live.tails import LINES_PER_MESSAGE, Tails, decode_batch
from tests.simulation.fake_database import FakeSaver
from tests.simulation.replica import NO_METRICS, Replica

__all__ = ["RULES", "Asks", "Gateway"]
REBUILD_PATIENCE_S = 600.0


class Gateway(Replica):
    """A replica with a read side and a database."""

    def __init__(self, world, number, shelf):
        super().__init__(world, world.rules["gateway"], number, shelf)
        self.serves = False
        self.visitors = {}
        self.floor = 0
        """Answers must show CONTROL at least up to here, since a client has seen it."""

    def _new_saver(self):
        return FakeSaver(
            self.shelf,
            "gateway",
            RULES.state,
            lambda: True,
            NO_METRICS,
            projection=project,
            roots=RULES.roots,
        )

    def start(self):
        self.serves = False
        super().start()

    def crash(self):
        super().crash()
        self.serves = False
        for request in self.visitors:
            request.cancel()

    end = crash

    async def _end_of_log(self):
        return (await self.line.bounds(subjects.CONTROL))[1]

    async def run_background_tasks(self, parts):
        """Like the start of `services.gateway.app.serve_http`."""
        self.catalogue = Catalogue(parts.runner, parts.saver, parts.database, LogEnd(self._end_of_log))
        self.live = Live(self.catalogue, parts.journal, parts.saver.folded_position)
        self.peers = Peers(Asks(self._world), self.catalogue)
        self.following = FollowerResources(self.peers, Tails(parts.journal, self.catalogue))
        await parts.runner.ready.wait()
        await parts.saver.wait_for_position(self.catalogue.position, within_s=REBUILD_PATIENCE_S)
        self.live.start_recording()
        parts.saver.watch(self.live.notify_changes, self.live.notify_reload)
        self.serves = True

    def left_behind(self):
        """State that is still held for disconnected clients; empty if there is none."""
        counts = {
            "waiters": len(self.catalogue.waiters),
            "pages": self.live._open_pages,
            "followers": len(self.following.tails),
            "readers": len(self.following.tails._readers),
            "asking": self.saver._waiting_readers,
            "questions": int(self.catalogue._log_end._next is not None),
            "reads": len(self.saver.folded_position._marks) + len(self.saver.portions.saved._marks),
        }
        return {what: count for what, count in counts.items() if count}


def project(shelf, records, events):
    """In place of the list tables: rows as they were when they were saved."""
    if shelf.refuses is not None and any(event.id == shelf.refuses for event in events):
        raise ValueError(f"no column is wide enough for {shelf.refuses}")
    for (kind, key), record in records.items():
        if kind in ("experiments", "trials"):
            shelf.rows[kind, key] = record


class Asks:
    """Reaches the owners, like `services.kit.bus.BusClient`."""

    def __init__(self, world):
        self._world = world

    async def command(self, command):
        position, value = await self._world.ask(commands.OWNER_OF[type(command)], command)
        return Answer(position, value)

    async def query(self, query, *, min_position=0, stream=subjects.CONTROL):
        if not isinstance(query, LogPage):
            raise unavailable("nobody answers that here")
        return Answer(0, self._log_page(query))

    async def publish(self, subject, body):
        raise unavailable("no script outside of the cluster is played here")

    async def log_progress(self, owners):
        raise unavailable("nobody answers that here")

    def _log_page(self, query):
        """Like the tables of the metrics service: each batch once, as far as it has been read."""
        leaders = [
            replica
            for replica in self._world.of("metrics")
            if replica.answers and not replica.process.stopped
        ]
        if not leaders:
            raise unavailable("no metrics")
        through = leaders[0].runner.positions[subjects.LOGS]
        wanted, newest_offsets, lines = subjects.logs(query.task_id), {}, []
        for message in self._world.disk.streams[subjects.LOGS][:through]:
            if message.subject != wanted or (fresh := decode_batch(message)) is None:
                continue
            if fresh.offset > newest_offsets.get(fresh.source_key, -1):
                newest_offsets[fresh.source_key] = fresh.offset
                lines += [line for line in fresh.lines if line.id > query.after_id]
        more = len(lines) > query.limit
        lines = lines[: query.limit]
        cursor = lines[-1].id if more else through * LINES_PER_MESSAGE
        return {
            "lines": [_as_line(line) for line in lines],
            "through": through,
            "more": more,
            "cursor": cursor,
        }


def _as_line(line):
    return {name: getattr(line, name) for name in line.__struct_fields__}
