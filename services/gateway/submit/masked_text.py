"""The text of a configuration without the secrets that people wrote into it, still to be read as YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from det_contracts.expconf import MASK, secrets_of
from services.kit import yamlfile

LONG = 6
"""Characters of a secret that is looked for everywhere in a text, such as in a comment."""
MERGED = "<<"
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*")
_Places = set[tuple[str, ...]]


def masked_text(text: str, written: Any) -> str:
    """The text with a mask in place of every secret; `written` is what it means."""
    secrets = secrets_of(written) if isinstance(written, dict) else {}
    if not secrets:
        return text
    found = _replacements(yamlfile.node_of(text), (), set(secrets))
    # From the end, so that what is yet to be replaced stays where it is; once, where it is written once.
    for start, end, shown in sorted(set(found), reverse=True):
        properties = _PROPERTIES.match(text, start, end)
        begin = properties.end() if properties is not None else start
        tail = "\n" if text[begin:end].endswith("\n") else ""
        text = f'{text[:begin]}"{shown}"{tail}{text[end:]}'
    for secret in secrets.values():
        if isinstance(secret, str) and len(secret) >= LONG:
            text = text.replace(secret, MASK)
    return text


def _replacements(node: yaml.Node, path: tuple[str, ...], places: _Places) -> Iterator[tuple[int, int, str]]:
    """Where each secret stands in the text, and what is shown there."""
    if isinstance(node, yaml.MappingNode):
        for key, inner in node.value:
            if isinstance(key, yaml.ScalarNode):
                below = path if key.value == MERGED else (*path, key.value)
                yield from _replacements(inner, below, places)
    elif isinstance(node, yaml.SequenceNode):
        for inner in node.value:
            yield from _replacements(inner, path, places)
    elif path in places:
        yield node.start_mark.index, node.end_mark.index, MASK
    else:
        name, _, _ = node.value.partition("=")
        if (*path, name) in places:
            yield node.start_mark.index, node.end_mark.index, f"{name}={MASK}"
