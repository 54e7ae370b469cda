"""Downloads from a store that refuses, moves, throttles, or has its objects replaced meanwhile."""

import http.server
import re
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest
from minio.credentials.providers import ChainedProvider
from urllib3.exceptions import MaxRetryError

from determined.storage import S3StorageManager, download
from tests.fixtures.http_server import serving
from tests.sdk.storage.conftest import BUCKET, KEY, SECRET

ERROR = (
    "<?xml version='1.0'?><Error><Code>{}</Code><Message>It is &quot;so&quot;.</Message>"
    "<Resource>/checkpoints/one/f</Resource><RequestId>1</RequestId><HostId>2</HostId></Error>"
)
LIST = (
    "<?xml version='1.0'?><ListBucketResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/'><Name>{}</Name>"
    "<Prefix/><KeyCount>1</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>{}"
    "</ListBucketResult>"
)
ITEM = (
    '<Contents><Key>{}</Key><LastModified>2026-11-21T12:00:00.000Z</LastModified><ETag>"1"</ETag>'
    "<Size>{}</Size><StorageClass>STANDARD</StorageClass></Contents>"
)


class Answering(http.server.BaseHTTPRequestHandler):
    """Lists what its server has; its objects are answered as the server was told to."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        url = urlsplit(self.path)
        if "list-type" in parse_qs(url.query):
            prefix = parse_qs(url.query).get("prefix", [""])[0]
            items = (
                ITEM.format(escape(key), len(content))
                for key, content in self.server.objects.items()
                if key.startswith(prefix)
            )
            self.say(200, LIST.format(BUCKET, "".join(items)).encode(), {"Content-Type": "application/xml"})
            return
        key = unquote(url.path).removeprefix(f"/{BUCKET}/")
        first, last = map(int, re.findall(r"\d+", self.headers["Range"]))
        self.server.requests.append((key, first))
        self.server.answer(self, key, first, last)

    def say(self, status, content=b"", fields=()):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **dict(fields)}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def part(self, content, first, last, etag='"1"'):
        place = f"bytes {first}-{min(last, len(content) - 1)}/{len(content)}"
        self.say(206, content[first : last + 1], {"Content-Range": place, "ETag": etag})

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    made.daemon_threads, made.requests, made.objects = True, [], {"one/f": b"0123456789"}
    made.answer = lambda handler, key, first, last: handler.part(made.objects[key], first, last)
    with serving(made):
        yield made


@pytest.fixture
def storage(server, monkeypatch):
    monkeypatch.setattr(download, "_PAUSES_S", (0.0, 0.0))
    return S3StorageManager(BUCKET, KEY, SECRET, f"http://127.0.0.1:{server.server_port}")


def test_an_object_that_nobody_touches(storage, tmp_path, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    storage.download("one", tmp_path)
    assert (tmp_path / "f").read_bytes() == b"0123456789"


@pytest.mark.parametrize(
    ("status", "code", "tries"),
    [
        (400, "InvalidRequest", 1),
        (403, "AccessDenied", 1),
        (404, "NoSuchKey", 1),
        (408, "RequestTimeout", 3),
        (412, "PreconditionFailed", 1),
        (416, "InvalidRange", 1),
        (429, "TooManyRequests", 3),
        (500, "InternalError", 3),
        (503, "SlowDown", 3),
    ],
)
def test_refusals_name_the_place_the_object_and_the_reason(storage, server, tmp_path, status, code, tries):
    server.answer = lambda handler, *_: handler.say(status, ERROR.format(code).encode())
    with pytest.raises(OSError, match="refuses") as caught:
        storage.download("one", tmp_path)
    message = str(caught.value)
    assert message.startswith(f"the checkpoint storage {storage!r} refuses: object one/f: {status} ")
    assert f': {code}: It is "so".; check' in message
    assert "Signature" not in message
    assert len(server.requests) == tries
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"<html>Gateway</html>", b"\xff<Code>"])
def test_refusals_that_are_no_xml(storage, server, tmp_path, content):
    server.answer = lambda handler, *_: handler.say(405, content)
    with pytest.raises(OSError, match="refuses: object one/f: 405 Method Not Allowed; check"):
        storage.download("one", tmp_path)


def test_a_refusal_whose_text_is_cut_off_stays_one(storage, server, tmp_path):
    def cut_off(handler, *_):
        handler.say(403, b"<Error><Co", {"Content-Length": "300"})
        handler.close_connection = True

    server.answer = cut_off
    with pytest.raises(OSError, match="403 Forbidden"):
        storage.download("one", tmp_path)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_store_that_sends_elsewhere_says_where(storage, server, tmp_path, status):
    there = {"Location": "https://s3.elsewhere.example/checkpoints/one/f?X-Amz-Signature=1"}
    server.answer = lambda handler, *_: handler.say(status, ERROR.format("Moved").encode(), there)
    with pytest.raises(
        OSError, match=rf"{status} .*sends to https://s3.elsewhere.example/checkpoints/one/f; "
    ):
        storage.download("one", tmp_path)
    assert len(server.requests) == 1


@pytest.mark.parametrize("now", [b"0123456789x", b"012345678", b"0"])
def test_an_object_that_has_got_another_length_is_not_cut_to_the_old_one(storage, server, tmp_path, now):
    server.answer = lambda handler, key, first, last: handler.part(now, first, last)
    with pytest.raises(OSError, match="object one/f"):
        storage.download("one", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("etags", [("1", "2"), ("", "2"), ("1", "")])
def test_ranges_of_two_contents_do_not_become_one_file(storage, server, tmp_path, monkeypatch, etags):
    monkeypatch.setattr(download, "RANGE_SIZE_BYTES", 5)
    server.answer = lambda handler, key, first, last: handler.part(
        b"0123456789", first, last, etags[first > 0]
    )
    with pytest.raises(download.Changed, match="object one/f was replaced while it was fetched"):
        storage.download("one", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_stores_that_tell_neither_length_nor_etag(storage, server, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "RANGE_SIZE_BYTES", 3)

    def bare(handler, key, first, last):
        content = server.objects[key][first : last + 1]
        handler.say(206, content, {"Content-Range": f"bytes {first}-{last}/*"})

    server.answer = bare
    storage.download("one", tmp_path)
    assert (tmp_path / "f").read_bytes() == b"0123456789"


@pytest.mark.parametrize("names", [("a//b", "a/b"), ("a/./b", "a/b"), ("d", "d/e"), ("d/", "d")])
def test_objects_that_no_folder_can_hold_together_are_refused(storage, server, tmp_path, names):
    server.objects = {f"one/{name}": b"" if name.endswith("/") else b"0123" for name in names}
    with pytest.raises(ValueError, match="would both become"):
        storage.download("one", tmp_path / "back")
    assert not (tmp_path / "back").exists()
    wanted = names[1]
    storage.download("one", tmp_path / "back", selector=lambda name: name == wanted)
    assert (tmp_path / "back" / wanted).read_bytes() == b"0123"


@pytest.mark.parametrize(
    "name", ["with space", "a+b", "50%", "%2F", "~x", "ü/é", "a//b", "'(1)*!'", "#?&=;:@,$"]
)
def test_names_of_objects_arrive_as_they_are(storage, server, tmp_path, name):
    server.objects = {f"one/{name}": b"0123456789"}
    storage.download("one", tmp_path)
    assert server.requests == [(f"one/{name}", 0)]
    assert (tmp_path / name).read_bytes() == b"0123456789"


@pytest.mark.parametrize("error", [ValueError("none has any"), MaxRetryError(None, "http://169.254.169.254")])
def test_no_keys_anywhere(monkeypatch, error):
    def search(self):
        raise error

    monkeypatch.setattr(ChainedProvider, "retrieve", search)
    storage = S3StorageManager(BUCKET, endpoint_url="http://127.0.0.1:1")
    with pytest.raises(OSError, match=r"refuses: no keys were found .*: give access_key and secret_key"):
        storage.list_resources("one")


def test_trust_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "absent.pem"))
    with pytest.raises(FileNotFoundError, match=r"SSL_CERT_FILE names .* '.*/absent.pem'"):
        S3StorageManager(BUCKET, KEY, SECRET, "https://127.0.0.1:1").list_resources("one")


@pytest.mark.live
def test_a_store_behind_tls(s3_tls, tmp_path, monkeypatch):
    url, certificate = s3_tls
    storage = S3StorageManager(BUCKET, KEY, SECRET, url, f"tls/{tmp_path.name}")
    source = tmp_path / "source"
    source.mkdir()
    (source / "large").write_bytes(bytes(range(256)) * 80_000)
    (source / "small").write_bytes(b"5")
    with monkeypatch.context() as patched:
        patched.setenv("SSL_CERT_FILE", certificate)
        storage.upload(source, "one")
        storage.download("one", tmp_path / "back")
    for path in source.iterdir():
        assert (tmp_path / "back" / path.name).read_bytes() == path.read_bytes()
    stranger = S3StorageManager(BUCKET, KEY, SECRET, url, f"tls/{tmp_path.name}")
    monkeypatch.setattr(download, "_PAUSES_S", ())
    monkeypatch.setattr(stranger, "_client", storage._client)
    with pytest.raises(OSError, match=r"refuses: .*CERTIFICATE_VERIFY_FAILED"):
        stranger.download("one", tmp_path / "other")
