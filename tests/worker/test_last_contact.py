"""What a worker records of its contact with the cluster."""

import asyncio
import os
import threading

from worker.last_contact import Contact, ContactFile


async def in_contact():
    return True


def test_a_disk_that_stands_still_holds_up_nothing_but_runs_that_need_the_record(tmp_path, monkeypatch):
    disk_moves, is_writing = threading.Event(), threading.Event()
    write = os.pwrite

    def write_when_the_disk_moves(*arguments):
        is_writing.set()
        disk_moves.wait()
        return write(*arguments)

    monkeypatch.setattr(os, "pwrite", write_when_the_disk_moves)

    async def main():
        contact = Contact(in_contact, ContactFile(tmp_path / "contact").record_in_thread)
        recording = asyncio.create_task(contact.run_forever())
        start = asyncio.create_task(contact.wait_until_fresh())
        while not is_writing.is_set():
            await asyncio.sleep(0)
        # If the loop had waited for the disk, it would be here only after the disk was given up.
        assert not disk_moves.is_set()
        assert not start.done()
        disk_moves.set()
        await start
        assert (tmp_path / "contact").read_text().endswith("\n")
        recording.cancel()

    give_up = threading.Timer(30, disk_moves.set)
    give_up.start()
    asyncio.run(main())
    give_up.cancel()
