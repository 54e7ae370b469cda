"""A minimal REST client for benchmarks."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import requests


class Rest:
    """Submits experiments and waits for them."""

    def __init__(self, address: str) -> None:
        self._session = requests.Session()
        self.base = f"{address}/api/v1"
        login = {"username": "determined", "password": "", "isHashed": True}
        token = self._session.post(f"{self.base}/auth/login", json=login, timeout=15).json()["token"]
        self.headers = {"Authorization": f"Bearer {token}"}
        self._session.headers.update(self.headers)

    def create(self, config: str, script: str) -> int:
        """Submit a script `train.py`; returns the experiment's id."""
        content = base64.b64encode(script.encode()).decode()
        code = {"path": "train.py", "type": 48, "content": content, "mtime": "0", "mode": 0o644}
        body = {"modelDefinition": [code | {"uid": 0, "gid": 0}], "config": config, "activate": True}
        answer = self._session.post(f"{self.base}/experiments", json=body, timeout=15)
        answer.raise_for_status()
        return int(answer.json()["experiment"]["id"])

    def get(self, path: str) -> Any:
        """GET a path, as JSON."""
        return json.loads(self.read(path))

    def read(self, path: str) -> bytes:
        """GET a path; some answers are several lines of JSON."""
        answer = self._session.get(f"{self.base}/{path}", timeout=60)
        answer.raise_for_status()
        return answer.content

    def wait(self, id: int, within_s: float = 300, every_s: float = 0.02) -> str:
        """Wait until an experiment is over, polling every `every_s` seconds; returns its state."""
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            state = str(self.get(f"experiments/{id}")["experiment"]["state"])
            if state in ("STATE_COMPLETED", "STATE_CANCELED", "STATE_ERROR"):
                return state
            time.sleep(every_s)
        raise TimeoutError(f"experiment {id} is not over after {within_s} s")
