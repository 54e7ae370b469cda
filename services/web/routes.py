"""Routes that are declared in one place, with what they need, and prepared in another, once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from fastapi import APIRouter, Depends, Request

from services.kit.authz.needs import SAFE, Needs, Row

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
Check = Callable[[Request], Awaitable[None]]


class _Declared(NamedTuple):
    path: str
    endpoint: Callable[..., Any]
    methods: Sequence[str]
    row: Row
    options: dict[str, Any]


class Routes:
    """Declares routes as FastAPI's router does, and prepares none before they are added to one.

    FastAPI takes half a millisecond to prepare a route, and would do so for each router that has it.

    A route cannot be declared without what it needs. `reads=True` says that one of a method other than GET
    only reads, so that tokens for reading may call it. Other options are those of FastAPI.

    Example:
        ```python
        router = Routes()

        @router.get("/trials/{trial_id}", ("view", "trial"))
        async def trial(trial_id: int) -> Response: ...

        router.add_to(application.router, "/api/v1", guard)
        ```
    """

    def __init__(self) -> None:
        self._declared: list[_Declared] = []

    def get(self, path: str, needs: Needs, **options: Any) -> Callable[[Endpoint], Endpoint]:
        """Declare a route of GET."""
        return self.api_route(path, needs, methods=["GET"], **options)

    def post(self, path: str, needs: Needs, **options: Any) -> Callable[[Endpoint], Endpoint]:
        """Declare a route of POST."""
        return self.api_route(path, needs, methods=["POST"], **options)

    def put(self, path: str, needs: Needs, **options: Any) -> Callable[[Endpoint], Endpoint]:
        """Declare a route of PUT."""
        return self.api_route(path, needs, methods=["PUT"], **options)

    def patch(self, path: str, needs: Needs, **options: Any) -> Callable[[Endpoint], Endpoint]:
        """Declare a route of PATCH."""
        return self.api_route(path, needs, methods=["PATCH"], **options)

    def delete(self, path: str, needs: Needs, **options: Any) -> Callable[[Endpoint], Endpoint]:
        """Declare a route of DELETE."""
        return self.api_route(path, needs, methods=["DELETE"], **options)

    def api_route(
        self, path: str, needs: Needs, *, methods: Sequence[str], **options: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """Declare a route of several methods."""

        def declare(endpoint: Endpoint) -> Endpoint:
            self.add_api_route(path, endpoint, needs, methods=methods, **options)
            return endpoint

        return declare

    def add_api_route(
        self,
        path: str,
        endpoint: Callable[..., Any],
        needs: Needs,
        *,
        methods: Sequence[str],
        reads: bool = False,
        **options: Any,
    ) -> None:
        """Declare a route whose function is not written below a decorator."""
        row = Row(*needs, reads or SAFE.issuperset(methods))
        self._declared.append(_Declared(path, endpoint, methods, row, options))

    def rows(self, prefix: str) -> Iterator[tuple[tuple[str, str], Row]]:
        """Method and path of each route, and what it needs."""
        for route in self._declared:
            for method in route.methods:
                yield (method, prefix + route.path), route.row

    def add_to(self, router: APIRouter, prefix: str, guard: Callable[[Row], Check]) -> None:
        """Add the declared routes to a router, in their order, below a prefix.

        `guard` makes a route's check, which each request has to pass first.
        """
        for path, endpoint, methods, row, options in self._declared:
            behind = [Depends(guard(row)), *(options.get("dependencies") or ())]
            documented = options.get("openapi_extra") or {}
            if row.permission == "anybody":
                documented = {**documented, "security": []}
            more = {"methods": list(methods), "dependencies": behind, "openapi_extra": documented}
            router.add_api_route(prefix + path, endpoint, **options | more)
