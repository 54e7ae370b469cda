"""The platform's own regular expressions take time linear in the text, whatever the text holds.

Python's `re` goes back over a text. A pattern that does so from each of its characters took a minute for 64
KiB of quotes that a stranger sent, and everybody waited. So each pattern of a module is tried here on texts
that are made of its own pieces, and patterns that are put together later must not come from users.
"""

import ast
import importlib
import random
import re
import time
from functools import cache, partial
from pathlib import Path
from re import _constants as op
from re import _parser

import pytest

from tests.fixtures.processor_speed import least_spent_s

ROOT = Path(__file__).parents[2]
PACKAGES = ("services", "worker", "contracts/det_contracts")
LENGTHS = (20, 24, 28, 32, 100, 1000, 8000)
LIMIT_S = 0.03
"""For the longest text. A quadratic pattern takes from 0.15 s on."""
MAX_PUMP = 6
SAMPLES = 12
SEARCHING = ("search", "sub", "subn", "finditer", "findall", "split")
ALLOWED = {
    "services/catalogue/columns/values.py": "constants of this file",
    "services/rest_routes/present/cause.py": "constants of this file",
    "services/rest_routes/pages/page.py": "constants of this file",
    "services/web/body_limits.py": "a constant of another file",
    "worker/warm/warm_start.py": "constants of this file",
    "contracts/det_contracts/expconf/sections.py": "a user's, which is compiled and never matched",
}
"""Files with a pattern that is no constant, and where it comes from."""


def sources():
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


@cache
def patterns():
    """All compiled patterns that are names of modules, by module and name."""
    by_name = {}
    for path in sources():
        if "re.compile" not in path.read_text():
            continue
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removeprefix("contracts.")
        module = importlib.import_module(name.removesuffix(".__init__"))
        for variable, value in vars(module).items():
            for number, entry in enumerate(value if isinstance(value, list | tuple) else [value]):
                for part in entry if isinstance(entry, tuple) else [entry]:
                    if isinstance(part, re.Pattern):
                        by_name[f"{name}:{variable}{number or ''}"] = part
    return by_name


def is_searched(variable):
    """Whether a pattern is looked for at each place of a text, and not only at its beginning."""
    name = variable.rpartition(":")[2].rstrip("0123456789")
    calls = rf"\b{name}(\.({'|'.join(SEARCHING)})\(|\b(?!\.))"
    module = ROOT / (variable.partition(":")[0].replace(".", "/") + ".py")
    module = module if module.exists() else ROOT / "contracts" / module.relative_to(ROOT)
    uses = re.findall(calls, module.read_text())
    return any(use[0] for use in uses) or len(uses) > 1


def sample(parts, chance, depth=0):
    """A text that fits a pattern, or nearly does."""
    return "".join(_sample_one(kind, value, chance, depth) for kind, value in parts)


def _sample_one(kind, value, chance, depth):
    if kind in (op.LITERAL, op.NOT_LITERAL):
        return chr(value) if kind is op.LITERAL else chance.choice([chr(value), "x"])
    if kind is op.ANY:
        return chance.choice("xA1 .")
    if kind is op.IN:
        return chance.choice([_sample_class(*member) for member in value])
    if kind is op.BRANCH:
        return sample(chance.choice(value[1]), chance, depth + 1)
    if kind is op.SUBPATTERN:
        return sample(value[3], chance, depth + 1)
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        least, most, inner = value
        times = chance.randint(least, min(most, least + 2))
        return "".join(sample(inner, chance, depth + 1) for _ in range(times))
    return ""


def _sample_class(kind, value):
    if kind is op.LITERAL:
        return chr(value)
    if kind is op.RANGE:
        return chr(value[0])
    if kind is op.CATEGORY:
        return {op.CATEGORY_SPACE: " ", op.CATEGORY_DIGIT: "1", op.CATEGORY_WORD: "A"}.get(value, "-")
    return "x"


def pumps(pattern):
    """Pieces of texts that fit, and single characters: repeated, they are what makes a pattern go back."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    chance, pieces = random.Random(source), dict.fromkeys('"\\ \tA1_.-')
    for _ in range(SAMPLES):
        text = sample(_parser.parse(source, pattern.flags & ~re.DEBUG), chance)[:60]
        for start in range(len(text)):
            for size in range(1, MAX_PUMP + 1):
                pieces[text[start : start + size]] = None
        pieces[text] = None
    return [piece for piece in pieces if piece]


def search(pattern, methods, text):
    for method in methods:
        getattr(pattern, method)(text)


def slowest(pattern, methods):
    """Seconds for the slowest text, and its piece."""
    worst, at = 0.0, ""
    for pump in pumps(pattern):
        for length in LENGTHS:
            text = pump * (length // len(pump)) + "\0"
            subject = text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text
            began = time.thread_time()
            search(pattern, methods, subject)
            spent = time.thread_time() - began
            if spent > LIMIT_S:
                spent = least_spent_s(partial(search, pattern, methods, subject), LIMIT_S)
            if spent > worst:
                worst, at = spent, pump
            if spent > LIMIT_S * 3:
                # Longer texts could take for ever.
                return worst, at
    return worst, at


@pytest.mark.parametrize("name", patterns())
def test_a_pattern_goes_over_a_text_once(name):
    pattern = patterns()[name]
    methods = ("match", "fullmatch", "findall") if is_searched(name) else ("match", "fullmatch")
    spent, pump = slowest(pattern, methods)
    assert spent < LIMIT_S, f"{pattern.pattern!r} takes {spent:.2f} s for a text of {pump!r}"


def test_what_goes_back_is_noticed():
    for text, methods in ((r'"[^"\\]*(?:\\.[^"\\]*)*"', ("findall",)), (r"(a|aa)+b", ("match",))):
        assert slowest(re.compile(text), methods)[0] > LIMIT_S, text


def test_no_pattern_is_put_together_from_what_users_say():
    paths = set()
    for path in sources():
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "import re\n" in text else ():
            function = getattr(node, "func", None)
            if isinstance(function, ast.Attribute) and getattr(function.value, "id", "") == "re":
                if function.attr in ("escape", "error") or isinstance(node.args[0], ast.Constant):
                    continue
                if not _is_constant(node.args[0]):
                    paths.add(str(path.relative_to(ROOT)))
    assert paths - set(ALLOWED) == set(), "use services.kit.patterns for what users supply"
    assert set(ALLOWED) - paths == set(), "no longer needed in ALLOWED"


def _is_constant(node):
    """Whether a pattern is put together from constants of a module."""
    names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
    return all(name.lstrip("_").isupper() for name in names) and not any(
        isinstance(part, ast.Call) for part in ast.walk(node)
    )
