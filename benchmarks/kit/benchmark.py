"""The frame of every benchmark: a function that prints rows, at full size or tiny with `--quick`."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from benchmarks.kit.table import head
from tests.fixtures.chromium import CHROMIUM

Size = TypeVar("Size")
ROOT = Path(__file__).resolve().parents[2]
WEB_UI = ROOT / "services" / "rest_routes" / "pages" / "static" / "webui" / "index.html"


@dataclasses.dataclass(frozen=True)
class Benchmark(Generic[Size]):
    """One benchmark: each module of `benchmarks` defines one as BENCHMARK.

    Sizes are frozen dataclasses. `positional` names the fields that the command line accepts, in that order.
    `needs` names requirements that not every machine meets: a package, "chromium" or "web UI".
    """

    measure: Callable[[Size], None]
    full: Size
    quick: Size
    positional: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    def run(self, words: Sequence[str] | None = None) -> None:
        """Print the table, at the size that the command line asks for.

        Exits with EX_UNAVAILABLE if this machine lacks a requirement.
        """
        size = self.size(words)
        if lacks := self.lacks():
            print(lacks, file=sys.stderr)
            sys.exit(os.EX_UNAVAILABLE)
        head()
        self.measure(size)

    def size(self, words: Sequence[str] | None = None) -> Size:
        """The size that a command line asks for."""
        name = self.measure.__module__
        parser = argparse.ArgumentParser(f"python -m {name}", description=sys.modules[name].__doc__)
        parser.add_argument("--quick", action="store_true", help="a tiny size that only shows that it runs")
        for field in self.positional:
            kind = type(getattr(self.full, field))
            parser.add_argument(field, nargs="?", type=kind, help=f"usually {getattr(self.full, field)}")
        arguments: dict[str, Any] = vars(parser.parse_args(words))
        usual: Any = self.quick if arguments.pop("quick") else self.full
        chosen = {key: value for key, value in arguments.items() if value is not None}
        size: Size = dataclasses.replace(usual, **chosen)
        return size

    def lacks(self) -> str:
        """The missing requirement, and how to get it; empty if there is none."""
        return next((why for need in self.needs if (why := _lacks(need))), "")


def _lacks(need: str) -> str:
    match need:
        case "chromium":
            return "" if CHROMIUM else "there is no chromium: apt-get install chromium"
        case "web UI":
            return "" if WEB_UI.exists() else "the web UI is not built: make setup"
        case _:
            return "" if importlib.util.find_spec(need) else f"{need} is not installed: make setup"
