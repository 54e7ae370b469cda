"""Uploads many or large objects quickly and in bounded memory, with their checksums beside them."""

import io
import pathlib
import posixpath
import time
import uuid
from collections.abc import Mapping
from functools import partial

from determined.storage.bucket import Bucket
from determined.storage.checksums import Blocks, SummedReader, decode, encode
from determined.storage.listing import Resources
from determined.storage.parallel import run_all
from determined.storage.progress import Meter

MIB = 1 << 20
PART_SIZE_BYTES = 16 * MIB
PARALLEL_PARTS = 4
PARALLEL_OBJECTS = 8
# S3 accepts 10,000.
_MOST_PARTS = 9_000


def _part_size(size_bytes: int) -> int:
    """Return the part size: a multiple of 1 MiB that keeps the object below the store's limit on parts."""
    needed = -(-size_bytes // _MOST_PARTS)
    return max(PART_SIZE_BYTES, -(-needed // MIB) * MIB)


def upload(bucket: Bucket, root: str, src: pathlib.Path, files: Resources, meter: Meter) -> dict[str, Blocks]:
    """Upload `files` of the directory `src` under the key prefix `root`. Returns their checksums.

    At most 8 small files, and then 4 parts of one large file, are in memory at a time.
    """
    blocks: dict[str, Blocks] = {}

    def put(name: str) -> None:
        size = files[name]
        part_size = _part_size(size)
        with open(src / name, "rb") as file:
            reader = SummedReader(file, size, part_size, meter)
            bucket.put(posixpath.join(root, name), reader, size, part_size)
        blocks[name] = reader.blocks()

    large = {name for name, size in files.items() if size > PART_SIZE_BYTES}
    small = [partial(put, name) for name in files if name not in large]
    run_all(small, min(PARALLEL_OBJECTS, len(small)))
    for name in sorted(large):
        put(name)
    return blocks


def keep_checksums(bucket: Bucket, place: str, files: Mapping[str, Blocks]) -> None:
    """Store checksums under the key prefix `place`, next to those of other uploads."""
    content = encode(files)
    # Names sort by time, so the latest upload of a file wins.
    key = f"{place}{time.time_ns():020}-{uuid.uuid4().hex}.json"
    size = len(content)
    reader = SummedReader(io.BytesIO(content), size, max(size, PART_SIZE_BYTES), Meter(size, None))
    bucket.put(key, reader, size, max(size, PART_SIZE_BYTES))


def kept_checksums(bucket: Bucket, place: str) -> dict[str, Blocks]:
    """Return the checksums below the key prefix `place`, by file.

    Files stored by other programs have none.
    """
    blocks: dict[str, Blocks] = {}
    for key in sorted(bucket.sizes(place)):
        try:
            blocks |= decode(bucket.read(key))
        except ValueError as error:
            raise OSError(
                f"the checksums in object {key} of the bucket are damaged ({error}); "
                "delete that object to do without them"
            ) from error
    return blocks
