"""Routes that are declared in one place and prepared in another, once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fastapi import APIRouter
from fastapi.params import Depends


class Routes(APIRouter):
    """Declares routes as FastAPI's router does, and prepares none before they are added to one.

    FastAPI takes half a millisecond to prepare a route, and would do so for each router that has it.

    Example:
        ```python
        router = Routes()

        @router.get("/trials/{trial_id}")
        async def trial(trial_id: int) -> Response: ...

        router.add_to(application.router, "/api/v1", [Depends(check_access)])
        ```
    """

    def __init__(self) -> None:
        super().__init__()
        self._declared: list[tuple[str, Callable[..., Any], dict[str, Any]]] = []

    def add_api_route(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        """Declare a route; the options are those of FastAPI. Decorators such as `get` call this."""
        self._declared.append((path, endpoint, options))

    def add_to(self, router: APIRouter, prefix: str, dependencies: Sequence[Depends]) -> None:
        """Add the declared routes to a router, in their order, below a prefix and behind dependencies."""
        for path, endpoint, options in self._declared:
            behind = [*dependencies, *(options.get("dependencies") or ())]
            router.add_api_route(prefix + path, endpoint, **options | {"dependencies": behind})
