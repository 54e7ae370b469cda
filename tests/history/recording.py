"""The file of a recorded log: a line of facts, then a line per message, compressed."""

import base64
import gzip
import json

from services.kit.log import Stored


def write(path, streams, facts):
    """Keep a log and what was true at its end."""
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        file.write(json.dumps(facts, sort_keys=True).encode() + b"\n")
        for stream, messages in streams.items():
            for message in messages:
                body = base64.b64encode(message.body).decode()
                file.write(json.dumps([stream, message.position, message.subject, body]).encode() + b"\n")


def read(path):
    """The facts and the streams of a recorded log."""
    with gzip.open(path, "rb") as file:
        facts = json.loads(file.readline())
        streams = {}
        for line in file:
            stream, position, subject, body = json.loads(line)
            streams.setdefault(stream, []).append(Stored(subject, position, base64.b64decode(body)))
    return facts, streams
