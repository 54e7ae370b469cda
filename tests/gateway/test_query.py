"""What comes behind a question mark: in two spellings, several times, empty, or wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import Field

import services.rest_routes
from services.web import errors
from services.web.query import (
    NOTHING,
    Flag,
    FromQuery,
    Instant,
    MaybeFlag,
    Number,
    Paged,
    QueryNamesMiddleware,
    Users,
    enum_value,
    enum_values,
    normalize_names,
)


class Everything(Paged, Users):
    sort_by: Annotated[str, enum_value("SORT_BY_", ("ID", "NAME"))] = "NAME"
    states: Annotated[list[str], enum_values("STATE_", ("A", "B"))] = NOTHING
    since: Number = Field(None, alias="from")
    inner: str = Field("", alias="a.bC")
    follow: Flag = False
    archived: MaybeFlag = None
    at: Instant = None


@pytest.fixture(scope="module")
def ask():
    """What a route of `Everything` has read of a query, or the text of its refusal."""
    app = FastAPI()
    errors.install(app)
    app.add_middleware(QueryNamesMiddleware)

    @app.get("/api/v1/everything")
    def everything(query: FromQuery[Everything]) -> dict[str, object]:
        return query.model_dump()

    with TestClient(app) as client:

        def answer_to(query):
            answer = client.get(f"/api/v1/everything?{query}")
            return answer.json() if answer.is_success else answer.json()["error"]["error"]

        yield answer_to


@pytest.mark.parametrize(
    ("query", "read"),
    [
        ("", {"limit": 0, "sort_by": "NAME", "states": [], "archived": None, "order_by": False}),
        ("user_ids=1&userIds=2&users=a&users=b", {"user_ids": [1, 2], "users": ["a", "b"]}),
        ("sortBy=SORT_BY_ID&a.b_c=x", {"sort_by": "ID", "inner": "x"}),
        ("sort_by=SORT_BY_ID&sort_by=NAME", {"sort_by": "NAME"}),
        ("sort_by=SORT_BY_UNSPECIFIED&limit=&orderBy=", {"sort_by": "NAME", "limit": 0, "order_by": False}),
        ("limit=3&limit=4&OFFSET=7", {"limit": 4, "offset": 7}),
        ("states=0&states=STATE_A&states=B", {"states": ["A", "B"]}),
        ("follow&archived=False", {"follow": True, "archived": False}),
        ("follow=True&archived=0", {"follow": True, "archived": False}),
        ("order_by=2", {"order_by": True}),
        ("orderBy=ORDER_BY_DESC", {"order_by": True}),
        ("from=1.5&unknown=x", {"since": 1.5}),
        ("at=2023-11-14T22:13:20Z", {"at": 1_700_000_000}),
        ("at=2023-11-14T22:13:20.5Z", {"at": 1_700_000_000.5}),
        ("at=2023-11-14T22:13:20.123456789Z", {"at": 1_700_000_000.123456}),
        ("at=2023-11-15T00:13:20%2B02:00", {"at": 1_700_000_000}),
        ("at=", {"at": None}),
    ],
)
def test_what_is_read(ask, query, read):
    fields = ask(query)
    assert {name: fields[name] for name in read} == read


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("limit=many", "limit must be a whole number, not 'many'"),
        (f"limit={2**63}", f"limit must be a number of 64 bits, not {2**63}"),
        ("userIds=1&userIds=", "user_ids must be a whole number, not ''"),
        ("from=nan", "from must be a number, not 'nan'"),
        ("follow=perhaps", "follow must be true or false, not 'perhaps'"),
        ("orderBy=UP", "order_by must be ORDER_BY_ASC or ORDER_BY_DESC, not 'UP'"),
        ("sortBy=7", "sort_by must be SORT_BY_ and one of ID, NAME, not '7'"),
        ("states=STATE_A&states=X", "states must be STATE_ and one of A, B, not 'X'"),
        ("at=yesterday", "at must be a time like 2023-08-01T12:00:00Z, not 'yesterday'"),
        ("limit=x&offset=y", "; offset must be a whole number, not 'y'"),
    ],
)
def test_what_is_refused(ask, query, message):
    assert message in ask(query)


def test_names_are_respelled_and_values_are_not():
    taken = normalize_names(b"order_by=a_b&labels.metric_type=%C3%A4%20&x&a%5Fb=%ff&&=")
    assert taken == b"orderBy=a_b&labels.metricType=%C3%A4%20&x&aB=%ff&&="


def test_routes_read_queries_by_models_alone():
    """Else the document would not say what they take."""
    for path in Path(services.rest_routes.__file__).parents[1].rglob("*.py"):
        reads = re.findall(r"query_params", path.read_text())
        assert len(reads) == (1 if path.name == "api_call.py" else 0), path
