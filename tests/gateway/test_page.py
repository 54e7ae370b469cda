"""How the web UI is served."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path
from types import SimpleNamespace

import pytest

from services.rest_routes.pages import page


@pytest.fixture
def built(gateway, tmp_path, monkeypatch):
    folder = tmp_path / "webui"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>built</title>")
    (folder / "assets" / "index-abc.js").write_text("let x = 1;" * 1000)
    (tmp_path / "secret.txt").write_text("secret")
    monkeypatch.setattr(page, "BUILT", folder)
    return gateway


def test_every_place_is_the_one_page(built):
    built.client.headers.pop("Authorization")
    for path in ("/det", "/det/", "/det/dashboard", "/det/experiments/7/overview"):
        answer = built.send("GET", path)
        assert (answer.status_code, "built" in answer.text) == (200, True)
        assert "script" not in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/", "/det/dashboard"),
        ("/dashboard", "/det/dashboard"),
        ("/experiments/7/logs?level=ERROR", "/det/experiments/7/logs?level=ERROR"),
        ("/projects/1/experiments", "/det/projects/1/experiments"),
    ],
)
def test_addresses_without_the_prefix_lead_there(built, path, target):
    answer = built.send("GET", path)
    assert (answer.status_code, answer.headers["location"]) == (307, target)


def test_assets_are_packed_and_kept(built):
    answer = built.send("GET", "/det/assets/index-abc.js", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert "immutable" in answer.headers["cache-control"]
    assert "javascript" in answer.headers["content-type"]
    assert answer.text == "let x = 1;" * 1000
    plain = built.send("GET", "/det/assets/index-abc.js", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert len(gzip.compress(plain.content)) < len(plain.content)


@pytest.mark.parametrize("path", ["/det/assets/index-abc.js", "/det", "/docs"])
def test_a_slow_disk_holds_up_nobody_else(built, path, monkeypatch):
    page._asset.cache_clear()
    read, in_the_loop = Path.open, []

    def note(self, *arguments, **options):
        try:
            in_the_loop.append(asyncio.get_running_loop() is not None)
        except RuntimeError:
            in_the_loop.append(False)
        return read(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", note)
    assert built.send("GET", path).status_code == 200
    assert in_the_loop
    assert not any(in_the_loop)


@pytest.mark.parametrize("name", ["nope.js", "..%2f..%2fsecret.txt", "%2e%2e/secret.txt"])
def test_nothing_else_is_served(built, name):
    answer = built.send("GET", f"/det/assets/{name}")
    assert "secret" not in answer.text or answer.status_code == 404


def test_what_the_build_packed_is_sent_to_who_can_read_it(built):
    (page.BUILT / "assets" / "index-abc.js.br").write_bytes(b"as packed by the build")
    content, packing = page._asset(page.BUILT / "assets" / "index-abc.js", "br")
    assert (content, packing) == (b"as packed by the build", "br")
    for takes, sent in (("gzip, deflate, br", "br"), ("br;q=1.0, gzip;q=0.8", "br"), ("identity", "")):
        call = SimpleNamespace(request=SimpleNamespace(headers={"accept-encoding": takes}))
        assert page._best_encoding(call) == sent
    for takes in ("gzip", "gzip, br;q=0"):
        other = built.send("GET", "/det/assets/index-abc.js", headers={"Accept-Encoding": takes})
        assert other.headers["content-encoding"] == "gzip"
