"""TLS at the broker, the health port, the store and the database: who is not known is not spoken to."""

import asyncio
import contextlib
import gc
import json
import socket
import ssl
import struct
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import nats
import pytest
import sqlalchemy as sa

from determined.transport.bus_thread import BusThread
from services.kit import broker as kit
from services.kit import tls
from services.kit.blobs import s3_client
from services.kit.broker import held_port, port_of
from services.kit.conditions import Conditions
from services.kit.connection import connect
from services.kit.health import HealthPages
from services.kit.process_metrics import Measures
from services.kit.settings import BadSettings, ServiceSettings
from services.local import certificates
from tests.fixtures.broker import RealBroker
from tests.fixtures.s3_server import BUCKET, KEY, SECRET, s3_server


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    return certificates.ensure_certificates(folder, folder / "secrets", "127.0.0.1")


@pytest.fixture(scope="module")
def strangers(tmp_path_factory):
    """Of another authority."""
    folder = tmp_path_factory.mktemp("strangers")
    return certificates.ensure_certificates(folder, folder / "secrets", "127.0.0.1")


def of_broker(made):
    return kit.Tls(made.certificate, made.key, made.authority)


# -- settings


def test_certificate_and_key_belong_together(made, tmp_path):
    assert tls.server_context(ServiceSettings()) is None
    assert tls.server_context(ServiceSettings(tls_cert=made.certificate, tls_key=made.key)) is not None
    with pytest.raises(BadSettings, match="belong together"):
        tls.server_context(ServiceSettings(tls_cert=made.certificate))
    with pytest.raises(BadSettings, match=r"none\.pem"):
        tls.server_context(ServiceSettings(tls_cert=tmp_path / "none.pem", tls_key=made.key))


def test_a_key_of_another_certificate_is_reported(made, strangers):
    with pytest.raises(BadSettings, match=r"STEADFAST_TLS_KEY=.* cannot be used: .*mismatch"):
        tls.server_context(ServiceSettings(tls_cert=made.certificate, tls_key=strangers.key))


def test_all_addresses_of_brokers_are_of_one_kind(made):
    assert tls.broker_options("nats://a:1,nats://b:2", made.authority) == {}
    assert tls.broker_options("tls://a:1, tls://b:2", made.authority)["tls_handshake_first"] is True
    with pytest.raises(BadSettings, match="or none does"):
        tls.broker_options("tls://a:1,nats://b:2", made.authority)


def test_an_unreadable_authority_is_reported(tmp_path):
    (tmp_path / "ca.pem").write_text("nonsense")
    for path in (tmp_path / "none.pem", tmp_path / "ca.pem"):
        with pytest.raises(BadSettings, match="STEADFAST_TLS_CA"):
            tls.client_context(path)


# -- the broker


@pytest.fixture
def secured(made, tmp_path):
    (tmp_path / "broker").mkdir()
    server = RealBroker(tmp_path / "broker", of_broker(made)).start()
    yield server
    server.close()


def service_settings(server, authority):
    path = server.folder / "service.creds"
    path.write_text(server.authority.operator())
    return ServiceSettings(nats_url=server.url, nats_credentials=path, tls_ca=authority)


@pytest.mark.live
def test_who_knows_the_broker_speaks_with_it(secured, made):
    async def work():
        connection = await connect(service_settings(secured, made.authority), "test")
        heard = await connection.subscribe("_INBOX.x")
        await connection.publish("_INBOX.x", b"hello")
        received = (await heard.next_msg(timeout=60)).data
        await connection.close()
        return received

    assert asyncio.run(work()) == b"hello"


@pytest.mark.live
def test_unencrypted_and_untrusted_connections_fail(secured, strangers):
    async def refused(url, **options):
        # Other errors than these would mean that it was spoken with.
        with pytest.raises((nats.errors.Error, OSError, TimeoutError)):
            await nats.connect(
                url, max_reconnect_attempts=1, allow_reconnect=False, connect_timeout=2, **options
            )

    async def work():
        await refused(secured.url.replace("tls://", "nats://"))
        for authority in (None, strangers.authority):
            await refused(secured.url, **tls.broker_options(secured.url, authority))

    asyncio.run(work())


class Impostor(threading.Thread):
    """Stands where the broker is thought to be, asks for no TLS, and keeps the first bytes of each client."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.heard = []
        self.start()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client:
                client.sendall(b'INFO {"server_id":"x","version":"2.12.0","max_payload":1048576}\r\n')
                client.settimeout(5)
                try:
                    self.heard.append(client.recv(4096))
                except OSError:
                    self.heard.append(b"")

    @property
    def url(self):
        return f"tls://127.0.0.1:{self.listener.getsockname()[1]}"

    def first(self, patience=60):
        deadline = time.monotonic() + patience
        while not self.heard and time.monotonic() < deadline:
            time.sleep(0.01)
        assert self.heard, "nobody came"
        return self.heard[0]


@pytest.fixture
def impostor():
    thread = Impostor()
    yield thread
    thread.listener.shutdown(socket.SHUT_RDWR)
    thread.listener.close()
    thread.join()


HANDSHAKE = 0x16


# nats-py leaves the transport of a handshake that failed to the collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_service_tells_an_impostor_nothing(impostor, made):
    async def work():
        # As `connect` does, but for once only.
        options = tls.broker_options(impostor.url, made.authority)
        with contextlib.suppress(nats.errors.Error, OSError, TimeoutError):
            await nats.connect(
                impostor.url, allow_reconnect=False, max_reconnect_attempts=1, connect_timeout=2, **options
            )

    asyncio.run(work())
    gc.collect()
    heard = impostor.first()
    assert heard[0] == HANDSHAKE
    assert b"CONNECT" not in heard


def test_a_script_tells_an_impostor_nothing(impostor, made, tmp_path):
    authorities_path = tmp_path / "bus.json"
    authorities_path.write_text(json.dumps({"ca": made.authority.read_text()}))
    thread = BusThread([impostor.url], None, "_INBOX", authorities_path)
    thread.start()
    try:
        heard = impostor.first()
    finally:
        thread.stop()
    assert heard[0] == HANDSHAKE
    assert b"CONNECT" not in heard


@pytest.mark.live
def test_brokers_know_one_another_by_their_certificates(made, strangers, tmp_path):
    """Three of one authority find one another; one of another authority stays outside."""

    import subprocess

    held = [held_port() for _ in range(12)]
    ports = list(map(port_of, held))
    peers = [f"127.0.0.1:{ports[at]}" for at in range(4)]
    processes = []
    try:
        for at in range(4):
            folder = tmp_path / f"broker-{at}"
            folder.mkdir()
            shown = of_broker(made if at < 3 else strangers)
            member = kit.Member(f"nats-{at}", peers[at], peers)
            config = kit.write_config(
                folder, port=ports[4 + at], monitor_port=ports[8 + at], member=member, tls=shown
            )
            processes.append(subprocess.Popen(kit.command(config), stderr=subprocess.DEVNULL))

        def neighbours(at):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{ports[8 + at]}/routez", timeout=5) as answer:
                    return {route["remote_name"] for route in json.load(answer)["routes"] or ()}
            except OSError:
                return set()

        deadline = time.monotonic() + 60
        while any(len(neighbours(at)) < 2 for at in range(3)):
            assert time.monotonic() < deadline, [neighbours(at) for at in range(4)]
            time.sleep(0.05)
        assert neighbours(0) == {"nats-1", "nats-2"}
        assert neighbours(3) == set()
        # It asked for their certificates itself: who does not care is asked for one.
        careless = tls.client_context(made.authority)
        with (
            socket.create_connection(("127.0.0.1", ports[0]), timeout=60) as plain,
            careless.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
            pytest.raises(ssl.SSLError, match="certificate required"),
        ):
            secured.recv(4096)
    finally:
        for process in processes:
            process.kill()
            process.wait()
        for holder in held:
            holder.close()


# -- the health port, the store, the database


def test_the_health_port_shows_the_certificate(made):
    settings = ServiceSettings(tls_cert=made.certificate, tls_key=made.key)

    def get(port, scheme, context=None):
        try:
            url = f"{scheme}://127.0.0.1:{port}/livez"
            with urllib.request.urlopen(url, timeout=60, context=context) as answer:
                return answer.read()
        except (OSError, ValueError, urllib.error.URLError) as error:
            return type(error).__name__

    async def work():
        pages = HealthPages(Conditions("test"), Measures("test"))
        port = pages.start(0, tls=tls.server_context(settings))
        try:
            trusted = await asyncio.to_thread(get, port, "https", tls.client_context(made.authority))
            return (
                trusted,
                await asyncio.to_thread(get, port, "https"),
                await asyncio.to_thread(get, port, "http"),
            )
        finally:
            pages.stop()

    trusted, untrusted, plain = asyncio.run(work())
    assert trusted == b"ok\n"
    assert untrusted == "URLError"
    assert isinstance(plain, str)


@pytest.mark.live
def test_the_store_is_known_by_the_authority(made, tmp_path, monkeypatch):
    import urllib3

    with s3_server(tmp_path, made) as url:
        with pytest.raises(urllib3.exceptions.MaxRetryError, match="CERTIFICATE_VERIFY_FAILED"):
            s3_client(url, KEY, SECRET).bucket_exists(BUCKET)
        monkeypatch.setenv("STEADFAST_TLS_CA", str(made.authority))
        assert s3_client(url, KEY, SECRET).bucket_exists(BUCKET)


class SecuredPostgres(threading.Thread):
    """Speaks TLS to clients as PostgreSQL does, and plainly to a real one behind it."""

    SSL_REQUEST = struct.pack("!ii", 8, 80877103)

    def __init__(self, address, context):
        super().__init__(daemon=True)
        self.address, self.context = address, context
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=[client], daemon=True).start()

    def serve(self, client):
        try:
            assert client.recv(8, socket.MSG_WAITALL) == self.SSL_REQUEST
            client.sendall(b"S")
            secured = self.context.wrap_socket(client, server_side=True)
        except (OSError, AssertionError):
            client.close()
            return
        server = socket.socket(socket.AF_UNIX)
        server.connect(self.address)
        with server, secured:
            back = threading.Thread(target=self.pump, args=[server, secured], daemon=True)
            back.start()
            self.pump(secured, server)
            back.join()

    def pump(self, source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
        except (OSError, ValueError):
            pass
        finally:
            for connection in (source, target):
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


@pytest.mark.live
def test_the_database_is_known_by_the_authority(made, strangers, postgres_url):
    from services.kit import migrate

    url = sa.make_url(postgres_url)
    folder = url.query.get("host")
    if not isinstance(folder, str) or not folder.startswith("/"):
        pytest.skip("the PostgreSQL of these tests is not reached by a socket of this machine")
    context = tls.server_context(ServiceSettings(tls_cert=made.certificate, tls_key=made.key))
    front = SecuredPostgres(str(next(Path(folder).glob(".s.PGSQL.*[0-9]"))), context)
    try:
        for authority, wanted in ((made.authority, True), (strangers.authority, False)):
            query = {"sslmode": "verify-full", "sslrootcert": str(authority)}
            secured = url.set(host="127.0.0.1", port=front.port, query=query)
            text = secured.render_as_string(hide_password=False)
            if wanted:
                migrate.open_database(text, "searcher").close()
            else:
                with pytest.raises(sa.exc.OperationalError, match="certificate verify failed"):
                    migrate.open_database(text, "searcher").close()
    finally:
        front.listener.shutdown(socket.SHUT_RDWR)
        front.listener.close()
        front.join()


def test_nothing_older_than_tls_1_2(made):
    context = tls.server_context(ServiceSettings(tls_cert=made.certificate, tls_key=made.key))
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    assert tls.client_context(None).minimum_version >= ssl.TLSVersion.TLSv1_2
