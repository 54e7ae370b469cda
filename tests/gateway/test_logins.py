"""Wrong passwords: counted by address and by name, and no one attacker keeps others out."""

import pytest

from services.kit.admission import Busy
from services.kit.passwords import client_hash
from services.web.logins import MAX_ENTRIES, LoginLimiter, TokenBucket
from tests.gateway.harness import Harness


def fail(logins, name, address, now, times=1):
    """How many tries with a wrong password are let through."""
    for done in range(times):
        try:
            logins.start_attempt(name, address, now).failed()
        except Busy:
            return done
    return times


def lets_in(logins, name, address, now):
    return fail(logins, name, address, now) == 1


def test_tries_come_back_one_by_one():
    tries = TokenBucket(3, every_s=10)
    for _ in range(3):
        assert tries.wait_s("a", 100) == 0
        tries.consume("a", 100)
    assert tries.wait_s("a", 100) == 10
    assert tries.wait_s("b", 100) == 0
    assert tries.wait_s("a", 110) == 0
    tries.refund("a", 100)
    assert tries.wait_s("a", 100) == 0
    assert tries.wait_s("a", 10_000) == 0


def test_no_more_is_remembered_than_there_is_room_for():
    tries = TokenBucket(3, every_s=10)
    for number in range(MAX_ENTRIES + 10):
        tries.consume(str(number), 0)
    assert len(tries._used_until) == MAX_ENTRIES
    for _ in range(3):
        tries.consume("x", 0)
        tries.refund("x", 0)
    assert "x" not in tries._used_until


def test_who_guesses_one_name_is_put_off_with_when_to_come_again():
    logins = LoginLimiter()
    allowed = fail(logins, "ann", "10.0.0.1", 0, times=100)
    assert allowed == 12
    with pytest.raises(Busy) as busy:
        logins.start_attempt("ann", "10.0.0.1", 0)
    assert busy.value.problem.retry_after_s == 10
    assert lets_in(logins, "ann", "10.0.0.1", 10)


def test_who_guesses_many_names_is_put_off():
    logins = LoginLimiter()
    assert sum(fail(logins, f"user-{number}", "10.0.0.1", 0) for number in range(100)) == 24


def test_one_attacker_keeps_nobody_else_out():
    logins = LoginLimiter()
    for second in range(3600):
        fail(logins, "ann", "10.0.0.1", second, times=5)
        if second % 60 == 0:
            assert lets_in(logins, "ann", "10.0.0.2", second), second
    assert lets_in(logins, "bob", "10.0.0.2", 3600)


def test_not_even_many_attackers_keep_anybody_out_of_a_machine_of_theirs():
    logins = LoginLimiter()
    logins.start_attempt("ann", "10.0.0.2", 0).succeeded(0)
    for number in range(256):
        fail(logins, "ann", f"10.1.0.{number}", 0, times=5)
    with pytest.raises(Busy):
        logins.start_attempt("ann", "10.0.0.3", 0)
    assert lets_in(logins, "ann", "10.0.0.2", 0)


def test_all_addresses_of_an_ipv6_site_are_one():
    logins = LoginLimiter()
    assert sum(fail(logins, "ann", f"2001:db8::{number}", 0) for number in range(1, 100)) == 12
    assert lets_in(logins, "ann", "2001:db8:1::1", 0)
    assert fail(logins, "bob", "::ffff:10.0.0.1", 0, times=20) == 12
    assert not lets_in(logins, "bob", "10.0.0.1", 0)


def test_right_passwords_use_nothing_up():
    logins = LoginLimiter()
    for _ in range(1000):
        logins.start_attempt("ann", "10.0.0.1", 0).succeeded(0)


# -- over REST


def try_to_log_in(gateway, name, password, **headers):
    answer = gateway.send(
        "POST", "/api/v1/auth/login", {"username": name, "password": password}, headers=headers
    )
    gateway.client.cookies.clear()
    return answer


def test_too_many_wrong_passwords_are_429_with_retry_after(gateway, no_time_passes):
    statuses = [try_to_log_in(gateway, "determined", "wrong").status_code for _ in range(13)]
    assert statuses == [401] * 12 + [429]
    answer = try_to_log_in(gateway, "determined", "")
    assert answer.status_code == 429
    assert 0 < int(answer.headers["Retry-After"]) <= 10
    assert "try again in" in answer.json()["error"]["error"]
    assert try_to_log_in(gateway, "admin", "").status_code == 200


def test_what_a_client_says_of_its_address_counts_for_nothing(gateway, no_time_passes):
    for number in range(12):
        headers = {"X-Forwarded-For": f"10.0.0.{number}"}
        assert try_to_log_in(gateway, "determined", "wrong", **headers).status_code == 401
    assert try_to_log_in(gateway, "determined", "wrong", **{"X-Forwarded-For": "10.9.9.9"}).status_code == 429


def test_behind_a_proxy_of_ours_what_it_says_counts(tmp_path, no_time_passes):
    harness = Harness(tmp_path, trusted_proxies="127.0.0.0/8, 10.255.0.1")
    try:
        for number in range(13):
            # The client itself began the list; the proxy added where it saw it.
            headers = {"X-Forwarded-For": f"1.1.1.{number}, 10.0.0.1, 10.255.0.1"}
            last = try_to_log_in(harness, "ann", "wrong", **headers).status_code
        assert last == 429
        for other in ("10.0.0.2", "nonsense, 10.0.0.3", "10.0.0.1, 10.0.0.4"):
            assert try_to_log_in(harness, "ann", "wrong", **{"X-Forwarded-For": other}).status_code == 401
    finally:
        harness.close()


def test_a_password_of_a_version_before_is_renewed_when_it_is_used(gateway, costly_passwords):
    import hashlib

    from det_contracts.events.gateway import PasswordSet, UserSet

    sent, salt = client_hash("pw"), bytes(range(16))
    old = hashlib.scrypt(sent.encode(), salt=salt, n=2**14, r=8, p=1, maxmem=2**26).hex()
    gateway.apply(UserSet(user_id=3, username="ann", reason="x"))
    gateway.apply(PasswordSet(user_id=3, salt=salt.hex(), hashed=old, reason="x"))
    assert try_to_log_in(gateway, "ann", "other").status_code == 401
    assert gateway.catalogue.state.users[3].password.hashed == old
    token = try_to_log_in(gateway, "ann", "pw").json()["token"]
    renewed = gateway.catalogue.state.users[3].password
    assert renewed.hashed.startswith("$argon2id$v=19$m=65536,t=2,p=1$")
    assert renewed.salt == ""
    before = len(gateway._stream())
    assert try_to_log_in(gateway, "ann", "pw").status_code == 200
    renewals = [m for m in gateway._stream()[before:] if b"password_renewed" in m.body]
    assert not renewals, "once is enough"
    assert try_to_log_in(gateway, "ann", "other").status_code == 401
    assert gateway.send("GET", "/api/v1/me", headers={"Authorization": f"Bearer {token}"}).status_code == 200
    for path in ("/api/v1/events?limit=1000", "/api/v1/users", "/api/v1/users/3"):
        shown = gateway.send("GET", path).text
        assert "argon2" not in shown
        assert old not in shown


def test_a_password_that_is_set_while_another_is_checked_wins(gateway, costly_passwords):
    """The check takes a while; whoever knew the old password is not let in after it was changed."""
    import asyncio

    from det_contracts.commands import Password, SetPassword
    from services.kit import passwords
    from services.rest_requests import sign_in

    async def race():
        first, second = passwords.to_stored("first"), passwords.to_stored("second")
        await gateway.peers.command(SetPassword(user_id=2, password=first, user="admin"))
        trying = asyncio.ensure_future(sign_in.authenticate(gateway.backend, "determined", "first", "a"))
        while not gateway.backend.limits.passwords.admission.active:
            await asyncio.sleep(0)
        # What the check compares with is at hand by now.
        await gateway.peers.command(SetPassword(user_id=2, password=second, user="admin"))
        return (await asyncio.gather(trying, return_exceptions=True))[0]

    assert "wrong password, or no user" in str(gateway.run(race()))
    assert Password() != gateway.catalogue.state.users[2].password
