"""User-written configurations: YAML with version 1.2 number syntax and no duplicate keys.

`1e-3` is a number, `yes` and `on` are strings, `0o14` and `012` are 12 (client spec, section 4). Timestamps
stay strings, because a configuration must be representable in JSON.
"""

from __future__ import annotations

import re
from typing import Any, cast

import yaml

from det_contracts import yaml_scalars

NODE_LIMIT = 100_000
"""Maximum number of values, before and after aliases are expanded: a few lines can expand to billions."""
MAX_RELOCATED_CHARACTERS = 1 << 16
"""Maximum length of a text that is parsed a second time, slowly, to locate an error."""
MAX_DEPTH = 100
"""Maximum nesting depth, as for values in the log."""

_PAIR = re.compile(r"((?<!\\)(?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
"""Two escapes that are one character, behind no backslash that would make the first one none."""


class YamlProblem(ValueError):
    """The text is not valid YAML or repeats a key. The message names line and column, counted from 1."""


# The C parser is ten times as fast, but not every build of PyYAML has it.
_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Parser):  # type: ignore[misc]
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (PyYAML configures a class this way)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        _refuse_duplicates(node)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


for _rule in (yaml_scalars.MERGE, *yaml_scalars.SCALARS):
    _Loader.add_implicit_resolver(*_rule)
_Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: yaml_scalars.integer(str(node.value)))


def parse(text: str) -> Any:
    """Parse a text. Raises `YamlProblem`."""
    try:
        loader = _Loader(text)
    except yaml.YAMLError as error:
        raise YamlProblem(str(error)) from error
    try:
        node = _compose(loader)
        if node is None:
            return None
        _refuse_explosion(node)
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        raise YamlProblem(_describe_error(_locate_error(text, error))) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        nested = isinstance(error, RecursionError)
        raise YamlProblem("it is nested too deeply" if nested else str(error)) from error
    finally:
        loader.dispose()


def join_surrogates(text: str) -> str:
    """Return a JSON text in which each character that is escaped as two surrogates stands itself.

    JSON writes characters such as emojis in this way, and YAML, otherwise a superset, cannot read it.

    >>> join_surrogates('{"name": "\\\\ud83d\\\\ude80"}') == '{"name": "\\U0001f680"}'
    True
    """
    return _PAIR.sub(_join, text) if text.lstrip()[:1] in ("{", "[") else text


def _join(pair: re.Match[str]) -> str:
    high, low = int(pair[2], 16), int(pair[3], 16)
    return pair[1] + chr(0x10000 + ((high - 0xD800) << 10) + low - 0xDC00)


def node_of(text: str) -> yaml.Node:
    """Return the node tree of a text that `parse` accepts, in which each value has its source position."""
    loader = _Loader(text)
    try:
        return cast(yaml.Node, _compose(loader))
    finally:
        loader.dispose()


def _locate_error(text: str, error: yaml.MarkedYAMLError) -> yaml.MarkedYAMLError:
    """Prefer the error of the pure Python parser, which names the place where the fault began."""
    if (
        isinstance(error, (yaml.scanner.ScannerError, yaml.parser.ParserError))
        and len(text) <= MAX_RELOCATED_CHARACTERS
    ):
        try:
            for _ in yaml.parse(text, Loader=yaml.SafeLoader):
                continue
        except yaml.MarkedYAMLError as clearer:
            return clearer
    return error


def _compose(loader: _Loader) -> yaml.Node | None:
    """Build the node tree of a single-document text.

    The library's composer recurses, even in C, so that 100,000 brackets crash the process.
    """
    composer = _Composer(loader)
    event: Any = None
    while not isinstance(event, yaml.StreamEndEvent):
        event = loader.get_event()
        composer.feed(event)
    return composer.root


class _Composer:
    """A node tree under construction."""

    def __init__(self, loader: _Loader) -> None:
        self.root: yaml.Node | None = None
        self._loader = loader
        self._open: list[Any] = []
        self._anchors: dict[str, yaml.Node] = {}
        self._count = 0

    def feed(self, event: Any) -> None:
        """Process the next event. Raises what the library's composer would raise."""
        if isinstance(event, yaml.NodeEvent):
            self._append_node(
                self._resolve_alias(event) if isinstance(event, yaml.AliasEvent) else self._make_node(event)
            )
            if isinstance(event, yaml.CollectionStartEvent):
                self._open.append(self._last)
        elif isinstance(event, yaml.MappingEndEvent):
            node = self._open.pop()
            node.value = list(zip(node.value[::2], node.value[1::2], strict=True))
        elif isinstance(event, yaml.SequenceEndEvent):
            self._open.pop()
        elif isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            what = "but found another document"
            raise _ComposerError("expected a single document in the stream", None, what, event.start_mark)

    def _append_node(self, node: yaml.Node) -> None:
        self._last = node
        self._count += 1
        if self._count > NODE_LIMIT:
            raise YamlProblem(f"it holds more than {NODE_LIMIT} values")
        if self._open:
            self._open[-1].value.append(node)
        else:
            self.root = node

    def _resolve_alias(self, event: Any) -> yaml.Node:
        if event.anchor not in self._anchors:
            what = f"found undefined alias '{event.anchor}'"
            raise _ComposerError(None, None, what, event.start_mark)
        return self._anchors[event.anchor]

    def _make_node(self, event: Any) -> yaml.Node:
        kind = _KINDS[type(event)]
        value = event.value if kind is yaml.ScalarNode else []
        tag = event.tag
        if tag is None or tag == "!":
            tag = self._loader.resolve(kind, value if kind is yaml.ScalarNode else None, event.implicit)
        if len(self._open) >= MAX_DEPTH:
            raise YamlProblem("it is nested too deeply")
        node: yaml.Node = kind(tag, value, event.start_mark, event.end_mark)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node


_ComposerError: Any = yaml.composer.ComposerError
_KINDS: dict[type, Any] = {
    yaml.ScalarEvent: yaml.ScalarNode,
    yaml.SequenceStartEvent: yaml.SequenceNode,
    yaml.MappingStartEvent: yaml.MappingNode,
}


def _describe_error(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    # Of a second document, the problem is only the end of a sentence.
    parts = (error.context, error.problem) if str(error.problem).startswith("but ") else (error.problem,)
    what = " ".join(filter(None, parts)) or error.context or "not YAML"
    return f"line {mark.line + 1}, column {mark.column + 1}: {what}" if mark else what


def _refuse_duplicates(node: yaml.MappingNode) -> None:
    keys: set[tuple[str, str]] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
            continue
        if (key.tag, key.value) in keys:
            raise yaml.constructor.ConstructorError(
                None, None, f"found duplicate key '{key.value}'", key.start_mark
            )
        keys.add((key.tag, key.value))


def _refuse_explosion(root: yaml.Node) -> None:
    if _count(root, {}) > NODE_LIMIT:
        raise YamlProblem(f"it expands to more than {NODE_LIMIT} values once its aliases are followed")


def _count(node: yaml.Node, counts: dict[int, int]) -> int:
    """Count the values under a node. `counts` caches nodes that several aliases refer to."""
    if id(node) not in counts:
        # A node that contains itself counts as infinite.
        counts[id(node)] = NODE_LIMIT + 1
        counts[id(node)] = 1 + sum(_count(child, counts) for child in _children(node))
    return counts[id(node)]


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []
