"""Sessions of people: shown, prolonged, closed, forgotten."""

import time

import pytest

from det_contracts.commands import OpenSession, RenewSession
from det_contracts.events.gateway import SessionOpened, UserSet
from services.catalogue.domain import State, evolve
from services.kit.passwords import client_hash
from services.kit.rules import Call
from services.people import sessions, tokens
from services.people.commands import COMMANDS
from services.people.commands import sessions as rules
from tests.gateway.harness import KEY, Harness

SESSIONS = "/api/v1/users/2/sessions"


@pytest.fixture
def gateway(gateway):
    """One whose session is in the log."""
    gateway.log_in()
    return gateway


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def log_in(gateway, name="determined", client="a browser"):
    body = {"username": name, "password": ""}
    answer = gateway.send("POST", "/api/v1/auth/login", body, headers={"User-Agent": client})
    gateway.client.cookies.clear()
    return answer.json()["token"]


def status(gateway, token, path="/api/v1/me"):
    return gateway.send("GET", path, headers=bearer(token)).status_code


def test_one_sees_where_one_is_logged_in(gateway):
    before = time.time()
    log_in(gateway, client="x" * 500)
    open_sessions = gateway.get(SESSIONS)["sessions"]
    assert [session["current"] for session in open_sessions] == [False, True]
    assert open_sessions[0]["client"] == "x" * 200
    assert open_sessions[0]["address"] == "127.0.0.1"
    assert open_sessions[0]["userId"] == 2
    until = max(session.until for _, session in sessions.open_sessions_of(gateway.catalogue.state, 2))
    assert tokens.VALID_S <= until - before < tokens.VALID_S + 60


def test_no_token_is_in_the_log(gateway):
    token = log_in(gateway)
    assert all(token.encode() not in message.body for message in gateway._stream())


def test_a_session_is_revoked_and_others_go_on(gateway):
    lost = log_in(gateway)
    [id] = [session["id"] for session in gateway.get(SESSIONS)["sessions"] if not session["current"]]
    assert gateway.send("DELETE", f"{SESSIONS}/{id}").status_code == 200
    assert status(gateway, lost) == 401
    assert [session["current"] for session in gateway.get(SESSIONS)["sessions"]] == [True]
    assert gateway.send("DELETE", f"{SESSIONS}/{id}").status_code == 200
    assert gateway.refused(404, "DELETE", f"{SESSIONS}/none")


def test_all_others_are_revoked_at_once(gateway):
    lost = [log_in(gateway) for _ in range(3)]
    other = log_in(gateway, "admin")
    assert gateway.send("DELETE", SESSIONS).json() == {"revoked": 3}
    assert [status(gateway, token) for token in lost] == [401, 401, 401]
    assert status(gateway, other) == 200
    assert gateway.get("/api/v1/me")["user"]["id"] == 2


def test_sessions_of_others_are_for_administrators(gateway):
    theirs = log_in(gateway, "admin")
    for method, path in (("GET", ""), ("DELETE", ""), ("DELETE", "/x")):
        gateway.refused(403, method, f"/api/v1/users/1/sessions{path}")
    own = gateway.get(SESSIONS)["sessions"][0]["id"]
    gateway.log_in("admin")
    assert gateway.refused(404, "DELETE", f"/api/v1/users/1/sessions/{own}")
    assert gateway.send("DELETE", f"{SESSIONS}/{own}").status_code == 200
    assert status(gateway, theirs) == 200
    assert gateway.refused(404, "GET", "/api/v1/users/99/sessions")


def test_a_closed_session_is_refused_by_a_replica_that_begins_anew(gateway, tmp_path):
    token = gateway.log_in()
    gateway.post("/api/v1/auth/logout")
    (tmp_path / "other").mkdir()
    other = Harness(tmp_path / "other", gateway)
    try:
        assert status(other, token) == 401
    finally:
        other.close()


# -- prolonging


def opened(gateway, *, ago, until, id="s", user_id=2, user="determined"):
    """The token of a session that was opened some time ago."""
    now = time.time()
    session = tokens.Session(id, user, now - ago + tokens.VALID_S, at=now - ago)
    gateway.apply(
        SessionOpened(
            session_id=id,
            user_id=user_id,
            opened_at=now - ago,
            until=now + until,
            address="",
            client="",
            reason="x",
        )
    )
    return tokens.issue(KEY, session)


def renewals(gateway):
    gateway.settle()
    return [message for message in gateway._stream() if b"session.renewed" in message.body]


DAY = 86400.0


def test_a_session_that_is_used_lives_on_and_one_event_is_enough(gateway):
    token = opened(gateway, ago=4 * DAY, until=3 * DAY)
    for _ in range(5):
        assert status(gateway, token) == 200
    assert len(renewals(gateway)) == 1
    left = gateway.catalogue.state.open_sessions["s"].until - time.time()
    assert tokens.VALID_S - 60 < left <= tokens.VALID_S


def test_in_the_first_half_of_its_time_nothing_is_written(gateway):
    token = opened(gateway, ago=DAY, until=6 * DAY)
    assert status(gateway, token) == 200
    assert renewals(gateway) == []


def test_a_prolonged_session_outlives_what_its_token_says(gateway):
    token = opened(gateway, ago=20 * DAY, until=5 * DAY)
    assert status(gateway, token) == 200
    token = opened(gateway, ago=20 * DAY, until=-1.0, id="over")
    assert (
        gateway.send("GET", "/api/v1/me", headers=bearer(token))
        .json()["error"]["error"]
        .startswith("the token is too old")
    )


def test_no_session_lives_for_ever(gateway):
    token = opened(gateway, ago=85 * DAY, until=0.5 * DAY)
    assert status(gateway, token) == 200
    gateway.settle()
    left = gateway.catalogue.state.open_sessions["s"].until - time.time()
    assert left == pytest.approx(5 * DAY, abs=60)
    assert status(gateway, token) == 200
    assert len(renewals(gateway)) == 1


def test_what_is_closed_or_over_is_not_prolonged(gateway):
    opened(gateway, ago=4 * DAY, until=3 * DAY)
    opened(gateway, ago=9 * DAY, until=-2 * DAY, id="over")
    gateway.send("DELETE", SESSIONS)
    for id in ("s", "over", "unknown"):
        gateway.run(gateway.peers.command(RenewSession(session_id=id, until=time.time() + DAY)))
    assert renewals(gateway) == []


def test_a_session_of_a_version_before_goes_on_and_ends(gateway):
    """Nothing is known of its beginning."""
    import msgspec

    from services.kit import base64url

    def old_token(until):
        body = msgspec.json.encode({"id": "o", "user": "determined", "until": until, "allocation": ""})
        return f"{base64url.encode(body)}.{base64url.encode(tokens._signature(KEY, body))}"

    token = old_token(time.time() + DAY)
    assert status(gateway, token) == 200
    assert status(gateway, old_token(time.time() - 1)) == 401
    assert gateway.send("POST", "/api/v1/auth/logout", headers=bearer(token)).status_code == 200
    assert status(gateway, token) == 401


# -- forgetting


def ruled(state, command, at):
    from det_contracts import codec

    result = COMMANDS[type(command)](state, command, Call("c", at))
    for event in result.events:
        body = codec.encode(event, id="e", actor="gateway", at=at)
        list(evolve(state, codec.decode(body, 1)))
    return result


def open_one(state, id, at):
    command = OpenSession(
        session_id=id,
        user_id=2,
        opened_at=at,
        until=at + tokens.VALID_S,
        address="",
        client="",
        user="determined",
    )
    return ruled(state, command, at)


def token_of(id, at):
    return tokens.Session(id, "determined", at + tokens.VALID_S, at=at)


def is_open(state, id, at, now):
    try:
        sessions.check(state, token_of(id, at), now)
    except tokens.BadToken:
        return False
    return True


def test_expired_sessions_are_evicted_and_stay_refused():
    state = State()
    for number in range(200):
        open_one(state, f"s{number}", float(number))
    later = tokens.VALID_S + 1000.0
    for number in range(5):
        open_one(state, f"t{number}", later + number)
    assert len(state.open_sessions) == 5
    assert not is_open(state, "s3", 3.0, later)
    assert is_open(state, "t0", later, later + 10)


def test_a_user_has_so_many_sessions_and_the_newest_work(monkeypatch):
    monkeypatch.setattr(rules, "MAX_SESSIONS", 10)
    state = State()
    for number in range(35):
        open_one(state, f"s{number}", float(number))
        assert len(state.open_sessions) <= 10
    assert not is_open(state, "s24", 24.0, 40.0)
    assert all(is_open(state, f"s{number}", float(number), 40.0) for number in range(25, 35))
    # A replica that has not folded a new one yet takes it by its signature.
    assert is_open(state, "unknown", 39.0, 40.0)
    assert not is_open(state, "unknown", 20.0, 40.0)


def test_a_closed_session_is_remembered_as_long_as_its_token_would_live():
    from det_contracts.commands import CloseSession

    state = State()
    open_one(state, "s", 0.0)
    ruled(state, CloseSession(session_id="s", user="determined"), 1.0)
    open_one(state, "t", tokens.VALID_S - 1)
    assert not is_open(state, "s", 0.0, tokens.VALID_S - 1)
    open_one(state, "u", tokens.VALID_S + 1)
    assert "s" not in state.open_sessions
    assert not is_open(state, "s", 0.0, tokens.VALID_S + 1)


def test_who_is_renamed_keeps_their_session(gateway):
    token = log_in(gateway)
    gateway.apply(UserSet(user_id=2, username="other", former=("determined",), reason="x"))
    assert status(gateway, token) == 200


def test_a_task_changes_no_password_and_sees_no_sessions(gateway):
    from services.kit import task_tokens
    from tests.gateway import stories as story
    from tests.gateway.harness import TASK_KEY

    gateway.apply(story.created(1, user="determined"), story.trial_created(1), *story.running(1))
    [allocation] = gateway.catalogue.state.live
    token = task_tokens.issue(TASK_KEY, allocation)
    assert status(gateway, token) == 200
    for method, path, body in (
        ("GET", SESSIONS, None),
        ("DELETE", SESSIONS, None),
        ("GET", "/api/v1/tokens", None),
        ("POST", "/api/v1/tokens", {"name": "mine"}),
        ("POST", "/api/v1/users/2/password", client_hash("mine")),
        ("PATCH", "/api/v1/users/2", {"password": "mine"}),
    ):
        answer = gateway.send(method, path, body, headers=bearer(token))
        assert answer.status_code == 403, path
        assert "det user login" in answer.json()["error"]["error"]
