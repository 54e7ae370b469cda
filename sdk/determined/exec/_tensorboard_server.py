"""TensorBoard that ends once nobody has looked at it for a while: a child of `determined.exec.tensorboard`.

`python -m determined.exec._tensorboard_server SECONDS ARGS...`: the arguments are those of TensorBoard.
"""

from __future__ import annotations

import hmac
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import determined as det
from det_contracts.page_key import HEADER

logger = logging.getLogger("determined.exec.tensorboard")
CREDENTIAL = "DET_PAGE_CREDENTIAL"
"""The variable with the header that requests must carry. Unset: none, as an earlier release orders it."""
App = Callable[[Any, Any], Iterable[bytes]]


class Use:
    """When a server was last asked for anything."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()

    def seen_by(self, app: App) -> App:
        """Return a WSGI application that notes each request and passes it on."""

        def noting(environ: Any, start_response: Any) -> Iterable[bytes]:
            self._last = self._clock()
            return app(environ, start_response)

        return noting

    def left_s(self, idle_s: float) -> float:
        """Return for how many more seconds it may stay unused; 0 or less if it was unused for too long."""
        return self._last + idle_s - self._clock()


def only_for_the_gateway(app: App, credential: str) -> App:
    """Return a WSGI application that passes on what carries the credential. Others can reach the port too."""

    def admitting(environ: Any, start_response: Any) -> Iterable[bytes]:
        offered = environ.get(f"HTTP_{HEADER.upper()}", "")
        if hmac.compare_digest(offered.encode(), credential.encode()):
            return app(environ, start_response)
        start_response("401 Unauthorized", [("Content-Type", "text/plain")])
        return [b"ask the gateway\n"]

    return admitting


def end_when_idle(use: Use, idle_s: float) -> None:
    """Exit once nothing was requested for `idle_s` seconds."""
    while (left_s := use.left_s(idle_s)) > 0:
        time.sleep(left_s)
    logger.info("nobody has looked at this TensorBoard for %g s (idle_timeout), so it ends", idle_s)
    # Not by an exception in the main thread, which waits in the server. Its data server ends with it.
    os._exit(0)


def main() -> None:
    """Serve until killed or idle."""
    from absl import app
    from tensorboard import default, main_lib, program

    # Sets the level of TensorBoard's own log, which otherwise tells of each load cycle.
    main_lib.global_init()
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(det.LOG_FORMAT))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    use, idle_s = Use(), float(sys.argv[1])
    credential = os.environ.get(CREDENTIAL, "")

    class Server(program.WerkzeugServer):  # type: ignore[misc]
        """The server of TensorBoard, whose requests are noted."""

        def __init__(self, wsgi_app: App, flags: Any) -> None:
            watched_app = use.seen_by(wsgi_app)
            super().__init__(
                only_for_the_gateway(watched_app, credential) if credential else watched_app, flags
            )

    shown = program.TensorBoard(plugins=default.get_plugins(), server_class=Server)
    threading.Thread(target=end_when_idle, args=(use, idle_s), daemon=True).start()
    app.run(shown.main, argv=[sys.argv[0], *sys.argv[2:]], flags_parser=shown.configure)


if __name__ == "__main__":
    main()
