"""What one client asks slows down nobody else, and is answered in the end."""

import asyncio

import pytest

from services.kit.admission import Busy
from services.people import tokens
from services.people.sessions import rate_limit_key
from services.web import pacing
from services.web.pacing import Pacing
from services.web.pacing_middleware import Client, Pace, PacingMiddleware
from services.web.turns import EVERY, Turns
from tests.gateway.harness import Harness

ME = "/api/v1/me"


@pytest.fixture
def made(tmp_path):
    harnesses = []

    def make(**settings):
        harnesses.append(Harness(tmp_path, **settings))
        harnesses[-1].log_in()
        return harnesses[-1]

    yield make
    for harness in harnesses:
        harness.close()


def many(gateway, count, path=ME, **options):
    async def ask():
        requests = [gateway.client.get(path, **options) for _ in range(count)]
        return [answer.status_code for answer in await asyncio.gather(*requests)]

    return gateway.run(ask())


def admission(gateway):
    return gateway.backend.limits.pacing.admission


def test_so_many_are_in_hand_as_many_wait_and_the_others_come_again(made, monkeypatch):
    gateway = made(requests_each=3)
    inside, open_ = [], asyncio.Event()

    async def slow(self, who):
        inside.append(who)
        await open_.wait()

    monkeypatch.setattr(Pacing, "_turn", slow)

    async def ask():
        requests = [asyncio.ensure_future(gateway.client.get(ME)) for _ in range(10)]
        done, _ = await asyncio.wait(requests, return_when=asyncio.FIRST_COMPLETED)
        while len(done) < 4:
            done, _ = await asyncio.wait(requests, timeout=0.01)
        held = len(inside), admission(gateway).queued
        open_.set()
        return held, await asyncio.gather(*requests)

    held, answers = gateway.run(ask())
    assert held == (3, 3)
    codes = [answer.status_code for answer in answers]
    assert (codes.count(200), codes.count(429)) == (6, 4)
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert refused.headers["retry-after"] == "1"
    assert (admission(gateway).active, admission(gateway).queued) == (0, 0)


def test_another_client_does_not_wait_for_it(made, monkeypatch):
    gateway = made(requests_each=1)
    mine = gateway.client.headers["Authorization"]
    hers = {"Authorization": f"Bearer {gateway.log_in('admin')}"}
    open_ = asyncio.Event()

    async def slow(self, who):
        if who == "determined":
            await open_.wait()

    monkeypatch.setattr(Pacing, "_turn", slow)

    async def ask():
        requests = [
            asyncio.ensure_future(gateway.client.get(ME, headers={"Authorization": mine})) for _ in "ab"
        ]
        while not admission(gateway).queued:
            await asyncio.sleep(0)
        answer = await gateway.client.get(ME, headers=hers)
        open_.set()
        await asyncio.gather(*requests)
        return answer.status_code

    assert gateway.run(ask()) == 200


def test_who_asks_faster_than_their_share_waits_and_is_answered(made, monkeypatch):
    monkeypatch.setattr(pacing, "BURST_S", 0.01)
    gateway = made(requests_rate=500.0)
    assert set(many(gateway, 50)) == {200}
    assert gateway.backend.limits.pacing.refused == 0


def test_a_client_above_its_rate_gets_retry_after(made, monkeypatch, no_time_passes):
    monkeypatch.setattr(pacing, "BURST_S", 1.0)
    monkeypatch.setattr(pacing, "WITHIN_S", 0.0)
    gateway = made(requests_rate=5.0)
    codes = many(gateway, 20)
    assert codes.count(200) == 5 - 1, "one was for the login"
    answer = gateway.send("GET", ME)
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) >= 1
    assert admission(gateway).active == 0


def test_who_says_nobody_has_the_share_of_an_address(made, monkeypatch, no_time_passes):
    monkeypatch.setattr(pacing, "BURST_S", 1.0)
    monkeypatch.setattr(pacing, "WITHIN_S", 0.0)
    gateway = made(requests_rate=5.0)
    token = gateway.client.headers.pop("Authorization")
    codes = many(gateway, 20, "/api/v1/master")
    assert 0 < codes.count(429) < 20
    gateway.client.headers["Authorization"] = token
    assert gateway.send("GET", ME).status_code == 200
    assert set(many(gateway, 2, "/api/v1/master")) == {200}, "who has logged in uses up no address's share"
    assert admission(gateway).active == 0


REFUSED = {
    "no such page": ("GET", "/nowhere", {}, 404),
    "no such route": ("GET", "/api/v1/nowhere", {}, 404),
    "no such method": ("HEAD", "/api/v1/experiments", {}, 405),
    "not logged in": ("GET", ME, {"Authorization": ""}, 401),
    "wrong token": ("GET", ME, {"Authorization": "Bearer x"}, 401),
    "foreign name": ("GET", ME, {"Host": "evil.example"}, 421),
    "foreign page": ("POST", "/api/v1/auth/logout", {"Origin": "http://evil"}, 403),
    "ambiguous": ("GET", ME, {"Content-Length": "0", "Transfer-Encoding": "chunked"}, 400),
    "too large": ("POST", ME, {"Content-Length": f"{1 << 40}"}, 413),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_who_is_refused_has_a_share_as_well(made, monkeypatch, no_time_passes, kind):
    """A refusal costs nearly as much as an answer: a loop of them took all of a gateway's time."""
    monkeypatch.setattr(pacing, "BURST_S", 1.0)
    monkeypatch.setattr(pacing, "WITHIN_S", 0.0)
    gateway = made(requests_rate=5.0)
    method, path, headers, status = REFUSED[kind]
    if "Origin" in headers:
        # Another site's page can send cookies at most.
        del gateway.client.headers["Authorization"]

    async def ask():
        return [(await gateway.client.request(method, path, headers=headers)).status_code for _ in range(12)]

    codes = gateway.run(ask())
    assert set(codes) == {status, 429}
    assert codes.count(status) <= 5
    assert admission(gateway).active == 0


@pytest.mark.parametrize("path", [ME, "/nowhere", "/api/v1/experiments?limit=100"])
def test_a_crowd_of_one_user_delays_an_answer_to_another_little(made, path):
    gateway = made()
    his = {"Authorization": gateway.client.headers["Authorization"]}
    hers = {"Authorization": f"Bearer {gateway.log_in('admin')}"}

    async def ask():
        crowd = [asyncio.ensure_future(gateway.client.get(path, headers=his)) for _ in range(300)]
        # All of them have arrived before hers.
        for _ in range(2 * EVERY):
            await asyncio.sleep(0)
        assert (await gateway.client.get(ME, headers=hers)).status_code == 200
        before_hers = sum(request.done() for request in crowd)
        await asyncio.gather(*crowd)
        return before_hers

    assert gateway.run(ask()) <= 30


def test_any_number_where_there_is_no_limit(made):
    gateway = made(requests_rate=0.0)
    assert set(many(gateway, 300)) == {200}


def test_a_stream_holds_no_place_once_it_begins():
    async def played():
        rules, begun, over = Pacing(1, 0.0), asyncio.Event(), asyncio.Event()

        async def stream(scope, receive, send):
            held = rules.admission.active
            await send({"type": "http.response.start"})
            begun.held = held
            begun.set()
            await over.wait()

        async def send(message):
            """Nobody reads it."""

        pace = Pace(rules, Turns(), lambda scope: Client("ann", "ann"))
        going_on = asyncio.ensure_future(PacingMiddleware(stream, pace)({"type": "http"}, None, send))
        await begun.wait()
        assert (begun.held, rules.admission.active) == (1, 0)
        over.set()
        await going_on
        assert rules.admission.active == 0

    asyncio.run(played())


@pytest.mark.parametrize("path", ["/api/v1/experiments/99", "/api/v1/users/1/sessions", "/api/v1/nowhere"])
def test_what_is_refused_gives_its_place_back(made, path):
    gateway = made()
    assert gateway.send("GET", path).status_code in (403, 404)
    assert admission(gateway).active == 0


def test_who_hangs_up_gives_back_their_place_wherever_they_were():
    async def played():
        rules = Pacing(1, 0.0)
        await rules.acquire("ann")
        waiting = asyncio.ensure_future(rules.acquire("ann"))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        rules.admission.release("ann")
        assert (rules.admission.active, rules.admission.queued) == (0, 0)
        slow = Pacing(1, 1.0)
        slow._rate.wait_s = lambda who, now: 5.0
        waiting = asyncio.ensure_future(slow.acquire("ann"))
        await asyncio.sleep(0)
        assert slow.admission.active == 1
        waiting.cancel()
        await asyncio.wait([waiting])
        assert slow.admission.active == 0

    asyncio.run(played())


def test_who_waits_too_long_is_refused(monkeypatch):
    monkeypatch.setattr(pacing, "WITHIN_S", 0.01)

    async def played():
        rules = Pacing(1, 0.0)
        await rules.acquire("ann")
        with pytest.raises(Busy):
            await rules.acquire("ann")
        await rules.acquire("bob")

    asyncio.run(played())


def test_a_script_and_a_token_have_shares_of_their_own():
    person = tokens.Session("s", "ann", 0.0)
    token = tokens.Session("t", "ann", 0.0, api_token="t")
    script = tokens.Session("1.r1.1", "ann", 0.0, allocation="1.r1.1")
    assert len({rate_limit_key(session) for session in (person, token, script)}) == 3
