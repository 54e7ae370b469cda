"""What is counted of requests: no client makes time series of its own, which would stay for good."""

import asyncio

from services.kit.process_metrics import Measures
from services.web.request_metrics import MetricsMiddleware


async def _answer(scope, receive, send):
    await send({"type": "http.response.start", "status": 405, "headers": []})


def test_no_method_that_a_client_makes_up_has_a_time_series():
    async def series_of(*methods):
        measures = Measures("gateway")
        app = MetricsMiddleware(_answer, measures)
        for method in methods:
            scope = {"type": "http", "method": method, "path": "/x"}
            await app(scope, None, lambda message: asyncio.sleep(0))
        lines = (await measures.text()).decode().splitlines()
        return [line for line in lines if line.startswith("steadfast_request") and 'route="none"' in line]

    usual = asyncio.run(series_of("GET"))
    assert sum('method="GET"' in line for line in usual) == len(usual) > 0
    made_up = asyncio.run(series_of("GET", "PUT", *(f"BREW{number}" for number in range(50))))
    assert len(made_up) == 3 * len(usual)
    (counted,) = [line for line in made_up if "requests_total" in line and 'method="other"' in line]
    assert counted.endswith(" 50.0")
