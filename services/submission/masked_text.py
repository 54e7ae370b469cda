"""Masks the secrets in a configuration text, so that it remains valid YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from det_contracts.expconf import MASK, secrets_of
from services.kit import yamlfile

MIN_LENGTH = 6
"""Minimum length at which a secret is masked everywhere in the text, for example in comments."""
MERGED = "<<"
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*")
_Paths = set[tuple[str, ...]]


def masked_text(text: str, written: Any) -> str:
    """Return the text with every secret masked; `written` is its parsed value."""
    secrets = secrets_of(written) if isinstance(written, dict) else {}
    if not secrets:
        return text
    replacements = _replacements(yamlfile.node_of(text), (), set(secrets))
    # Replace from the end, so that earlier positions stay valid. An anchored secret is written once but found
    # several times, hence the set.
    for start, end, shown in sorted(set(replacements), reverse=True):
        properties = _PROPERTIES.match(text, start, end)
        begin = properties.end() if properties is not None else start
        tail = "\n" if text[begin:end].endswith("\n") else ""
        text = f'{text[:begin]}"{shown}"{tail}{text[end:]}'
    for secret in secrets.values():
        # Shorter ones would mask parts of other words, and hide the text instead of the secret.
        if isinstance(secret, str) and len(secret) >= MIN_LENGTH:
            text = text.replace(secret, MASK)
    return text


def _replacements(
    node: yaml.Node, path: tuple[str, ...], secret_paths: _Paths
) -> Iterator[tuple[int, int, str]]:
    """The position of each secret in the text, and its replacement."""
    if isinstance(node, yaml.MappingNode):
        for key, inner in node.value:
            if isinstance(key, yaml.ScalarNode):
                below = path if key.value == MERGED else (*path, key.value)
                yield from _replacements(inner, below, secret_paths)
    elif isinstance(node, yaml.SequenceNode):
        for inner in node.value:
            yield from _replacements(inner, path, secret_paths)
    elif path in secret_paths:
        yield node.start_mark.index, node.end_mark.index, MASK
    else:
        name, _, _ = node.value.partition("=")
        if (*path, name) in secret_paths:
            yield node.start_mark.index, node.end_mark.index, f"{name}={MASK}"
