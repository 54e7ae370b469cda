"""When an unused TensorBoard ends."""

from types import SimpleNamespace

import pytest

from det_contracts.page_key import credential
from determined.exec import _tensorboard_server, tensorboard
from determined.exec._serving import Served
from determined.exec._tensorboard_server import CREDENTIAL, Use, end_when_idle, only_for_the_gateway
from tests.fixtures.own_time import set_time


class Ended(Exception):
    """Stands in for the end of the process."""


def test_each_request_counts_and_is_answered(monkeypatch):
    now = [100.0]
    use = Use(lambda: now[0])
    app = use.seen_by(lambda environ, start_response: [environ["body"]])
    assert use.left_s(60) == 60
    now[0] = 150.0
    assert app({"body": b"curves"}, None) == [b"curves"]
    assert use.left_s(60) == 60
    now[0] = 215.0
    assert use.left_s(60) == -5


@pytest.mark.parametrize("header", [None, "", "token ", "Bearer 7e57", "token 7e57x", "t\xf6ken"])
def test_a_script_of_its_host_sees_nothing_and_counts_for_nothing(header):
    now, answers = [0.0], []
    use = Use(lambda: now[0])
    app = only_for_the_gateway(use.seen_by(lambda *_: [b"curves"]), "token 7e57")
    now[0] = 30.0
    environ = {} if header is None else {"HTTP_AUTHORIZATION": header}
    assert app(environ, lambda status, headers: answers.append(status)) == [b"ask the gateway\n"]
    assert (answers, use.left_s(60)) == (["401 Unauthorized"], 30)
    assert app({"HTTP_AUTHORIZATION": "token 7e57"}, None) == [b"curves"]
    assert use.left_s(60) == 60


@pytest.mark.parametrize(
    ("order", "expected"), [({"keyed": True}, credential("task.a.b")), ({"keyed": False}, None), ({}, None)]
)
def test_its_key_is_in_its_environment_alone(order, expected):
    """Command lines are for everybody to read. Gateways of earlier releases send none."""
    info = SimpleNamespace(session_token="task.a.b")
    task = Served(info=info, order=order, host="", port=0, key="")
    assert tensorboard.variables(task).get(CREDENTIAL) == expected


def test_it_ends_once_it_was_unused_for_long_enough(monkeypatch, caplog):
    now, naps = [0.0], []
    use = Use(lambda: now[0])
    app = use.seen_by(lambda environ, start_response: [])

    def nap(seconds):
        naps.append(seconds)
        now[0] += seconds
        if len(naps) == 1:  # somebody has looked, ten seconds before the end
            now[0] -= 10
            app({}, None)
            now[0] += 10

    def leave(code):
        raise Ended(code)

    set_time(monkeypatch, _tensorboard_server, sleep=nap)
    monkeypatch.setattr(_tensorboard_server.os, "_exit", leave)
    with caplog.at_level("INFO"), pytest.raises(Ended, match="0"):
        end_when_idle(use, 60.0)
    assert naps == [60.0, 50.0]
    assert "nobody has looked at this TensorBoard for 60 s" in caplog.text
