"""Names that existing clients import from here (core API spec, names under `determined.common`)."""

from __future__ import annotations

from typing import Any, TextIO

from determined import yamlfile

_LEGACY_TRAINING = "training"
_LEGACY_VALIDATION = "validation"


def safe_load_yaml_with_exceptions(yaml_file: TextIO) -> Any:
    """The content of an open YAML file; raises `yamlfile.YamlProblem` (a ValueError) with line and column."""
    return yamlfile.parse(yaml_file.read(), str(getattr(yaml_file, "name", "the YAML text")))
