"""How passwords are kept."""

import pytest

from det_contracts.commands import Password
from services.kit import passwords


def test_each_is_kept_with_a_salt_of_its_own_and_only_it_fits():
    stored, other = passwords.to_stored("sent"), passwords.to_stored("sent")
    assert stored.hashed != other.hashed
    assert passwords.matches("sent", stored)
    assert not passwords.matches("Sent", stored)
    assert not passwords.matches("", stored)
    assert not passwords.is_outdated(stored)


def test_the_cost_is_todays():
    assert passwords.to_stored("x").hashed.startswith("$argon2id$v=19$m=65536,t=2,p=1$")
    cheap = passwords._ARGON2.from_parameters
    assert cheap is not None
    assert passwords.is_outdated(Password(hashed="$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$RdescudvJCsgt3ub"))
    assert passwords.is_outdated(Password("00", "00"))
    assert not passwords.is_outdated(Password())


def test_nobody_has_no_password_at_all():
    assert passwords.matches("", Password())
    assert not passwords.matches("x", Password())
    assert not passwords.matches("", None)
    assert not passwords.matches("x", None)


@pytest.mark.parametrize(
    "damaged", ["$argon2id$", "$argon2id$v=19$m=65536,t=2,p=1$x", "$argon2id$v=19$m=65536,t=2,p=1$AAAA$"]
)
def test_a_damaged_hash_fits_nothing(damaged):
    assert not passwords.matches("x", Password(hashed=damaged))


def test_half_a_character_is_a_password_too():
    assert passwords.matches("\ud800", passwords.to_stored("\ud800"))
    assert passwords.client_hash("\ud800") != passwords.client_hash("\udfff")


def test_a_setting_is_a_password_or_its_hash():
    clear = passwords.from_setting("secret")
    assert passwords.matches(passwords.client_hash("secret"), clear)
    assert passwords.from_setting(clear.hashed) == clear
