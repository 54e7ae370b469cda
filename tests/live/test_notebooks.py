"""A notebook on a cluster: a cell runs through the proxy, and in a browser; it says whether it is used."""

import importlib.util
import json
import uuid

import pytest
import requests
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.fixtures.browser import browser as browser
from tests.fixtures.browser import signed_in as signed_in
from tests.fixtures.chromium import CHROMIUM
from tests.fixtures.local_cluster import wait_for

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        importlib.util.find_spec("jupyterlab") is None,
        reason="JupyterLab is not installed: pip install jupyterlab",
    ),
]


def executed(channels, code):
    """What a cell prints."""
    header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "session": "s", "version": "5.3"}
    message = {"header": {**header, "username": "", "date": ""}, "parent_header": {}, "metadata": {}}
    channels.send(json.dumps({**message, "content": {"code": code}, "channel": "shell", "buffers": []}))
    printed = ""
    while True:
        received = json.loads(channels.recv(timeout=60))
        printed += received["content"]["text"] if received["msg_type"] == "stream" else ""
        # The reply and what was printed come by channels of their own.
        if received["msg_type"] == "status" and received["content"]["execution_state"] == "idle" and printed:
            return printed


def events_of_task(cluster, owner, id):
    """The newest events of an owner that name this task, in words."""
    steps = cluster.get("events", owner=owner, limit=200)["steps"]
    return [step["what"] for step in steps if id in step["what"]]


def idle_said(cluster, id):
    """What the notebook has said of being used, in its order."""
    return [
        what.split()[-1] == "idle"
        for what in events_of_task(cluster, "scheduler", id)
        if "idle" in what or "used" in what
    ]


def test_a_cell_runs_through_the_proxy(cluster, tmp_path, request):
    (tmp_path / "mine.py").write_text("answer = 42\n")
    limits = ("--config", "idle_timeout=2h", "--config", "resources.slots=1")
    done = cluster.det("notebook", "start", "--no-browser", "-c", tmp_path, *limits)
    address = done.stdout.split("running at: ")[1].split()[0]
    (notebook,) = (each for each in cluster.get("notebooks")["notebooks"] if each["id"] in address)
    headers = {"Authorization": f"Bearer {cluster._token}"}
    assert requests.get(address, timeout=60).status_code == 401
    wait_for(lambda: idle_said(cluster, notebook["id"]) == [True], 60, "that nobody uses it")
    kernel = requests.post(f"{address}api/kernels", json={}, headers=headers, timeout=60).json()
    channels = f"{address.replace('http', 'ws', 1)}api/kernels/{kernel['id']}/channels"
    with connect(channels, additional_headers=headers, proxy=None) as socket:
        code = "import mine, os; print(mine.answer, os.environ['DET_TASK_TYPE'], os.environ['DET_USER'])"
        assert executed(socket, code) == "42 NOTEBOOK determined\n"
    with pytest.raises(InvalidStatus, match="401"):
        connect(channels, proxy=None)
    wait_for(lambda: idle_said(cluster, notebook["id"]) == [True, False], 60, "that somebody uses it")
    if CHROMIUM is not None:
        in_browser(request.getfixturevalue("signed_in")(cluster), address)
    # Its server is reached by the gateway alone: who has the port has no key.
    (answers,) = (
        what for what in events_of_task(cluster, "gateway", notebook["id"]) if "answers HTTP at" in what
    )
    direct = answers.split()[-1]
    assert requests.get(f"http://{direct}/proxy/{notebook['id']}/api/kernels", timeout=60).status_code == 403
    cluster.det("notebook", "kill", notebook["id"])
    ended = lambda: cluster.get(f"notebooks/{notebook['id']}")["notebook"]["state"]  # noqa: E731
    wait_for(lambda: ended() == "STATE_TERMINATED", 60, "the end")


def in_browser(page, address):
    """JupyterLab works on a page that can do nothing in the name of who looks at it."""
    page.goto(address)
    page.locator(".jp-LauncherCard[title*='training']").first.click(timeout=60_000)
    cell = page.locator(".jp-Notebook .jp-Cell .cm-content").first
    cell.wait_for(timeout=60_000)
    # What is run before there is a kernel is not run.
    page.get_by_text("Python 3 (training) | Idle").wait_for(timeout=60_000)
    cell.click()
    page.keyboard.type("print(6 * 7)")
    page.keyboard.press("Shift+Enter")
    page.locator(".jp-OutputArea-output pre", has_text="42").first.wait_for(timeout=60_000)
    assert page.evaluate("self.origin") == "null"
