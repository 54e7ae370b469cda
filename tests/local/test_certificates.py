"""The authority of a local cluster, and what its broker and gateway show."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from services.local import certificates
from services.local.certificate_renewal import renew_certificates

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def keep(tmp_path):
    return lambda host="127.0.0.1", now=NOW: certificates.ensure_certificates(
        tmp_path / "tls", tmp_path / "secrets", host, now
    )


def shown(made):
    return x509.load_pem_x509_certificate(made.certificate.read_bytes())


def names(made):
    alternative_names = shown(made).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in alternative_names}


def test_it_names_this_machine_and_where_it_listens(keep):
    assert {"localhost", "127.0.0.1", "::1"} <= names(keep())
    assert {"10.1.2.3", "localhost"} <= names(keep("10.1.2.3"))
    assert not {"0.0.0.0", "::"} & names(keep("0.0.0.0"))  # noqa: S104


def test_keys_are_for_their_owner_alone(keep, tmp_path):
    made = keep()
    for path in (made.key, tmp_path / "secrets" / "ca.key"):
        assert path.stat().st_mode & 0o077 == 0
    assert made.authority.stat().st_mode & 0o044 == 0o044


def test_what_is_good_stays(keep):
    before = [path.read_bytes() for path in (keep().authority, keep().certificate, keep().key)]
    made = keep(now=NOW + timedelta(days=300))
    assert [path.read_bytes() for path in (made.authority, made.certificate, made.key)] == before


def test_before_its_end_there_is_a_new_one_of_the_same_authority(keep):
    first = keep()
    authority, before = first.authority.read_bytes(), shown(first)
    made = keep(now=NOW + timedelta(days=340))
    assert made.authority.read_bytes() == authority
    assert shown(made).not_valid_after_utc > before.not_valid_after_utc
    shown(made).verify_directly_issued_by(x509.load_pem_x509_certificate(authority))


def test_another_address_another_certificate(keep):
    before = shown(keep())
    assert shown(keep("10.1.2.3")) != before


def test_a_damaged_one_is_made_again(keep):
    made = keep()
    made.certificate.write_text("nonsense")
    assert "localhost" in names(keep())
    made.authority.unlink()
    made = keep()
    shown(made).verify_directly_issued_by(x509.load_pem_x509_certificate(made.authority.read_bytes()))


def test_it_is_renewed_while_the_cluster_runs_and_the_broker_reads_it(keep):
    looks, shown_then = [NOW, NOW + timedelta(days=1), NOW + timedelta(days=340)], []

    class Enough(Exception):
        pass

    def look():
        if not looks:
            raise Enough
        return keep(now=looks.pop(0))

    def reload_broker():
        shown_then.append(shown(keep(now=NOW + timedelta(days=340))).not_valid_after_utc)

    with pytest.raises(Enough):
        asyncio.run(renew_certificates(look, reload_broker, 0.0))
    assert shown_then == [NOW + timedelta(days=340 + certificates.CERTIFICATE_DAYS)]


def test_a_failed_check_of_certificates_is_reported_and_repeated(keep, capsys):
    looks = iter([lambda: keep(), OSError("no space left"), KeyboardInterrupt()])

    def look():
        now = next(looks)
        if isinstance(now, BaseException):
            raise now
        return now()

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(renew_certificates(look, pytest.fail, 0.0))
    assert "no space left" in capsys.readouterr().err
