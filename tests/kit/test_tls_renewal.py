"""Certificates and authorities that are replaced on disk are in use from the next handshake on."""

import asyncio
import json
import os
import shutil
import signal
import ssl

import pytest
import urllib3

from determined.transport import bus_thread
from determined.transport.bus_thread import BusThread
from services.kit import broker as kit
from services.kit import tls
from services.kit.blobs import s3_client
from services.kit.conditions import Conditions
from services.kit.connection import connect
from services.kit.health import HealthPages
from services.kit.process_metrics import Measures
from services.kit.settings import BadSettings, ServiceSettings
from services.local import certificates
from tests.fixtures.broker import RealBroker
from tests.fixtures.local_cluster import wait_for
from tests.fixtures.s3_server import BUCKET, KEY, SECRET, s3_server


def authority_in(folder):
    """A new authority, and a certificate of it."""
    return certificates.ensure_certificates(folder, folder / "secrets", "127.0.0.1")


@pytest.fixture
def made(tmp_path):
    return authority_in(tmp_path / "first")


@pytest.fixture
def other(tmp_path):
    return authority_in(tmp_path / "second")


def replace(path, by):
    """As tools for certificates do: a rename, never half of a file."""
    draft = path.with_suffix(".new")
    shutil.copyfile(by, draft)
    os.replace(draft, path)


def renew(made, other):
    for name in ("key", "certificate", "authority"):
        replace(getattr(made, name), getattr(other, name))


def settings_of(made):
    return ServiceSettings(tls_cert=made.certificate, tls_key=made.key)


def shown_at(port):
    return ssl.get_server_certificate(("127.0.0.1", port), timeout=60).strip()


def of_file(path):
    return path.read_text().strip()


def test_a_server_in_threads_shows_the_new_one(made, other):
    async def work():
        pages = HealthPages(Conditions("test"), Measures("test"))
        port = pages.start(0, tls=tls.server_context(settings_of(made)))
        try:
            before = await asyncio.to_thread(shown_at, port)
            renew(made, other)
            return before, await asyncio.to_thread(shown_at, port)
        finally:
            pages.stop()

    first = of_file(made.certificate)
    assert asyncio.run(work()) == (first, of_file(other.certificate))


def test_a_server_in_a_loop_shows_the_new_one_and_open_connections_go_on(made, other):
    async def echo(reader, writer):
        while line := await reader.readline():
            writer.write(line)
        writer.close()

    async def work():
        server = await asyncio.start_server(echo, "127.0.0.1", 0, ssl=tls.server_context(settings_of(made)))
        port = server.sockets[0].getsockname()[1]
        knows = tls.client_context(made.authority)
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=knows)
        renew(made, other)
        shown = await asyncio.to_thread(shown_at, port)
        writer.write(b"still here\n")
        echoed = await reader.readline()
        # The same context of a client knows the new authority by now.
        again = await asyncio.open_connection("127.0.0.1", port, ssl=knows)
        for stream_writer in (writer, again[1]):
            stream_writer.close()
            await stream_writer.wait_closed()
        server.close()
        return shown, echoed

    assert asyncio.run(work()) == (of_file(other.certificate), b"still here\n")


def test_an_unusable_certificate_is_reported_once_and_the_old_one_stays(made, other, caplog, capsys):
    context = tls.server_context(settings_of(made))
    first = context._current()
    replace(made.certificate, other.certificate)
    assert context._current() is context._current() is first
    made.key.unlink()
    assert context._current() is first
    printed = capsys.readouterr().out
    assert printed.count("tls.not_renewed") == 2, "once for the key of another one, once for none"
    assert str(made.key) in printed
    replace(made.key, other.key)
    assert context._current() is not first
    assert context._current() is context._current()


def test_files_that_are_wrong_at_the_start_are_refused_as_before(tmp_path):
    with pytest.raises(BadSettings, match=r"none\.pem"):
        tls.client_context(tmp_path / "none.pem")


@pytest.mark.live
def test_a_store_is_known_by_the_authority_of_now(made, other, tmp_path, monkeypatch):
    monkeypatch.setenv("STEADFAST_TLS_CA", str(made.authority))
    with s3_server(tmp_path, other) as url:
        client = s3_client(url, KEY, SECRET)
        with pytest.raises(urllib3.exceptions.MaxRetryError, match="CERTIFICATE_VERIFY_FAILED"):
            client.bucket_exists(BUCKET)
        replace(made.authority, other.authority)
        assert client.bucket_exists(BUCKET)


@pytest.fixture
def secured(made, tmp_path):
    (tmp_path / "broker").mkdir()
    server = RealBroker(tmp_path / "broker", kit.Tls(made.certificate, made.key, made.authority)).start()
    yield server
    server.close()


@pytest.mark.live
def test_services_and_scripts_find_a_broker_again_that_has_another_authority(
    secured, made, other, tmp_path, monkeypatch
):
    monkeypatch.setattr(bus_thread, "CREDENTIALS_EVERY_S", 0.05)
    path, authorities_path = secured.folder / "service.creds", tmp_path / "bus.json"
    path.write_text(secured.authority.operator())
    authorities_path.write_text(json.dumps({"ca": made.authority.read_text()}))
    settings = ServiceSettings(nats_url=secured.url, nats_credentials=path, tls_ca=made.authority)
    script = BusThread([secured.url], str(path), "_INBOX", authorities_path)
    script.start()

    async def work():
        service = await connect(settings, "test")
        scripts = await asyncio.wrap_future(script.submit(script.connection()))
        before = scripts.options["tls"]
        renew(made, other)
        # As the worker does it for scripts that run.
        authorities_path.write_text(json.dumps({"ca": made.authority.read_text()}))
        await asyncio.to_thread(wait_for, lambda: scripts.options["tls"] is not before, 60, "the script")
        secured._process.send_signal(signal.SIGHUP)
        port = int(secured.url.rpartition(":")[2])
        await asyncio.to_thread(
            wait_for, lambda: first_shown(port) == of_file(other.certificate), 60, "the broker to reload"
        )
        secured.stop()
        secured.start()
        back = lambda: service.is_connected and scripts.is_connected  # noqa: E731
        reconnected = lambda: service.stats["reconnects"] and scripts.stats["reconnects"]  # noqa: E731
        await asyncio.to_thread(wait_for, lambda: back() and reconnected(), 60, "both to be back")
        await service.close()

    try:
        asyncio.run(work())
    finally:
        script.stop()


def first_shown(port):
    try:
        return shown_at(port)
    except OSError:
        return ""


def test_a_worker_reports_to_a_gateway_with_another_authority(made, other):
    """What it samples, over connections that are made for each report."""
    from worker.settings import WorkerSettings
    from worker.utilisation.reporting import poster

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async def work():
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls.server_context(settings_of(made)))
        port = server.sockets[0].getsockname()[1]
        post = poster(WorkerSettings(master_url=f"https://127.0.0.1:{port}", tls_ca=made.authority))
        await asyncio.to_thread(post, {}, "")
        renew(made, other)
        await asyncio.to_thread(post, {}, "")
        server.close()

    asyncio.run(work())
