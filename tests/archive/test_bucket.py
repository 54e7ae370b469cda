"""The archive in a bucket of a real S3 server: as in a directory."""

import asyncio
import io
import itertools

import pytest

from det_contracts import subjects
from services.kit import blobs
from services.kit.log import BadSegment
from services.kit.log_range import read_range
from tests.archive.places import Place
from tests.fixtures.s3_server import BUCKET, KEY, SECRET, s3_server

pytestmark = pytest.mark.live
CONTROL = subjects.CONTROL
ALL = {"toy": 10**9}


class Bucket(Place):
    """A log whose archive is a bucket, of which one can take away and exchange objects."""

    def __init__(self, url, prefix, folder):
        super().__init__(folder)
        self.prefix = prefix
        self.client = blobs.s3_client(url, KEY, SECRET)
        self.blobs = blobs.connect(
            f"s3://{BUCKET}/{prefix}", endpoint_url=url, access_key=KEY, secret_key=SECRET
        )

    def read(self, key):
        with self.blobs.open(key) as file:
            return file.read()

    def write(self, key, content):
        self.client.put_object(BUCKET, f"{self.prefix}/{key}", io.BytesIO(content), len(content))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    root = tmp_path_factory.mktemp("bucket")
    with s3_server(root) as url:
        yield url, itertools.count()


@pytest.fixture
def place(server, tmp_path):
    url, numbers = server
    return Bucket(url, f"archive-{next(numbers)}", tmp_path)


async def everything(log):
    return await read_range(log, CONTROL, after=0, keep=10**6)


def test_what_was_cut_is_read_from_the_bucket(place):
    async def work():
        await place.fill(51)
        await place.seal()
        assert await place.cutter.cut(ALL) == 50
        assert (await place.stream.bounds(CONTROL))[0] == 51
        assert await everything(place.log) == place.whole()
        story = await read_range(
            place.log, CONTROL, after=0, subjects=("control.trial.3.progressed",), keep=100
        )
        assert story == [
            message for message in place.whole() if message.subject == "control.trial.3.progressed"
        ]

    asyncio.run(work())


def damage(place, key, other):
    content = bytearray(place.read(key))
    content[len(content) // 2] ^= 0x40
    place.write(key, bytes(content))


def swap(place, key, other):
    place.write(key, place.read(other))


def take_away(place, key, other):
    place.client.remove_object(BUCKET, f"{place.prefix}/{key}")


@pytest.mark.parametrize("when", ["before the cut", "after it"])
@pytest.mark.parametrize("harm", [damage, swap, take_away])
def test_a_bad_segment_is_named_and_nothing_more_is_removed(place, when, harm):
    async def work():
        await place.fill(40)
        first, second, *_ = await place.seal()
        if when == "after it":
            await place.cutter.cut(ALL)
        harm(place, first.content, second.content)
        reading = everything(place.log) if when == "after it" else place.cutter.cut(ALL)
        with pytest.raises(BadSegment, match=r"from 1 to 10.*backup"):
            await reading
        if when == "before the cut":
            assert await everything(place.stream) == place.whole()

    asyncio.run(work())


def test_a_bucket_that_is_away_holds_back_the_cut(place, monkeypatch):
    async def work():
        await place.fill(40)
        await place.seal()

        def refuse(*_):
            raise OSError("the blob store refuses")

        monkeypatch.setattr(blobs.S3Blobs, "open", refuse)
        with pytest.raises(OSError, match="refuses"):
            await place.cutter.cut(ALL)
        monkeypatch.undo()
        assert (await place.stream.bounds(CONTROL))[0] == 1
        assert await place.cutter.cut(ALL) == 40

    asyncio.run(work())
