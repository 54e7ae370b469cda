"""What compose asks the broker's container, against a real broker whose disk fills and has room again."""

import asyncio
import os
import subprocess
import sys

import pytest

from services.kit.log_jetstream import ensure_streams
from tests.fixtures.broker import RealBroker
from tests.fixtures.compose import read_file

pytestmark = pytest.mark.live
NC = """#!{python} -I
import socket, sys
with socket.create_connection(("127.0.0.1", {port}), timeout=60) as there:
    there.sendall(sys.stdin.buffer.read())
    while data := there.recv(65536):
        sys.stdout.buffer.write(data)
"""
KILLALL = """#!/bin/sh
echo "$@" >> {kills}
"""


def test_a_broker_that_cannot_write_is_ended_once_there_is_room(small_disk, tmp_path):
    disk = small_disk(64)
    broker = RealBroker(disk.path).start()
    kills, bin = tmp_path / "kills", tmp_path / "bin"
    bin.mkdir()
    for name, text in (
        ("nc", NC.format(python=sys.executable, port=broker._monitor)),
        ("killall", KILLALL.format(kills=kills)),
    ):
        (bin / name).write_text(text)
        (bin / name).chmod(0o755)
    kind, script = read_file()["nats"]["healthcheck"]["test"]
    assert kind == "CMD-SHELL"
    script = script.replace("/data", str(disk.path))

    def healthy():
        environment = os.environ | {"PATH": f"{bin}:{os.environ['PATH']}"}
        return not subprocess.run(["sh", "-c", script], env=environment, check=False).returncode

    async def fill():
        connection = await broker.connect()
        await ensure_streams(connection.jetstream(), keep_bytes=8 << 20)
        disk.fill()
        with pytest.raises(Exception, match="timeout"):
            await connection.request("control.searcher.x.y", b"x" * 100_000, timeout=1)
        await connection.close()

    try:
        assert healthy()
        asyncio.run(fill())
        assert not healthy()
        assert not kills.exists()
        disk.make_room()
        assert not healthy()
        assert kills.read_text() == "nats-server\n"
        broker.kill9()
        broker.start()
        assert healthy()
    finally:
        broker.close()


def test_a_broker_that_is_away_is_unwell_and_not_ended(tmp_path):
    for name, text in (("nc", "#!/bin/sh\nexit 1\n"), ("killall", KILLALL.format(kills=tmp_path / "kills"))):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    script = read_file()["nats"]["healthcheck"]["test"][1]
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert subprocess.run(["sh", "-c", script], env=environment, check=False).returncode == 1
    assert not (tmp_path / "kills").exists()
