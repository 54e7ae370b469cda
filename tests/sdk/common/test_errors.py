from __future__ import annotations

import pytest

from determined.common.api import errors


@pytest.mark.parametrize(
    ("kind", "status", "shown"),
    [
        (errors.NotFoundException, 404, "no such trial"),
        (errors.ForbiddenException, 403, "Forbidden(no such trial)"),
        (
            errors.UnauthenticatedException,
            401,
            "Unauthenticated: no such trial; log in with 'det user login USERNAME'",
        ),
    ],
)
def test_the_status_classes_are_bad_requests_with_their_status(kind, status, shown):
    error = kind("no such trial")
    assert isinstance(error, errors.APIException) is (status == 404), "as in 0.25"
    assert isinstance(error, errors.BadRequestException)
    assert (error.status_code, str(error), error.message) == (status, shown, shown)


def test_the_other_names():
    assert issubclass(errors.MasterNotFoundException, errors.BadRequestException)
    assert "corrupted token cache" in str(errors.CorruptTokenCacheException())
    for name in ("BadResponseException", "DeleteFailedException", "EmptyResultException"):
        assert issubclass(getattr(errors, name), Exception)
