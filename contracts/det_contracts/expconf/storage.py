"""Storage and retention of checkpoints (experiment configuration spec, section 2.4)."""

from __future__ import annotations

import posixpath
from typing import Any

from det_contracts.expconf.composites import Field, Record, Union, rule
from det_contracts.expconf.scalars import BadForm, Integer, MultiForm, Text

UNKNOWN = """is not an object where object["type"] is one of 'shared_fs', 's3', 'gcs' or 'azure'"""
OUTSIDE = "storage_path must either be a relative directory or a subdirectory of host_path"

RETENTION = {
    "save_experiment_best": Field(Integer(0), 0),
    "save_trial_best": Field(Integer(0), 1),
    "save_trial_latest": Field(Integer(0), 1),
}


def clean_prefix(value: Any) -> Any:
    """Remove empty and dot parts from a bucket prefix. Raises `BadForm` if it contains `..`."""
    if not isinstance(value, str):
        return value
    parts = value.split("/")
    # Keys in a bucket may contain `..`, but whoever copies them to a disk would leave the directory.
    if ".." in parts:
        raise BadForm("prefix cannot contain /../")
    joined = "/".join(part for part in parts if part not in ("", "."))
    return "/" + joined if value.startswith("/") else joined


def is_inside(host_path: str, storage_path: str) -> bool:
    """Whether a path, absolute or relative to `host_path`, is inside it."""
    # Only names are compared: the directory exists on the workers, not here. Links are resolved where it is
    # used (see `det_contracts.roots`).
    host = posixpath.normpath(host_path)
    return posixpath.commonpath([host, posixpath.normpath(posixpath.join(host, storage_path))]) == host


def _storage_path_fits(storage: dict[str, Any]) -> bool:
    host, path = storage.get("host_path"), storage.get("storage_path")
    return host is None or path is None or is_inside(host, path)


class Azure(Record, frozen=True):
    """The account's credentials belong together, so they are taken from one side only."""

    def merge(self, high: Any, low: Any) -> Any:
        # An address of one side with the credential of the other would send a secret to a stranger's server.
        if _names_account(high):
            low = _without_account(low)
        elif _names_account(low):
            high = _without_account(high)
        return super().merge(high, low)


def _names_account(storage: dict[str, Any]) -> bool:
    return storage.get("connection_string") is not None or storage.get("account_url") is not None


def _without_account(storage: dict[str, Any]) -> dict[str, Any]:
    account = ("connection_string", "account_url", "credential")
    return {key: item for key, item in storage.items() if key not in account}


TEXT = Field(Text())
BUCKET = {"bucket": Field(Text(), needed="finally"), "prefix": Field(MultiForm(clean_prefix, Text()))}

TYPES = {
    "s3": Record({**BUCKET, "access_key": TEXT, "secret_key": TEXT, "endpoint_url": TEXT}),
    "gcs": Record(BUCKET),
    "shared_fs": Record(
        {
            "host_path": Field(Text(posixpath.isabs, "host_path must be an absolute path"), needed="finally"),
            "storage_path": TEXT,
            "propagation": Field(Text(), "rprivate"),
            "container_path": TEXT,
            "checkpoint_path": TEXT,
            "tensorboard_path": TEXT,
        },
        (rule("host_path storage_path", OUTSIDE, _storage_path_fits),),
    ),
    "directory": Record(
        {
            "container_path": Field(
                Text(posixpath.isabs, "container_path must be an absolute path"), needed="finally"
            )
        }
    ),
    "azure": Azure(
        {
            "container": Field(Text(), needed="finally"),
            "connection_string": TEXT,
            "account_url": TEXT,
            "credential": TEXT,
        },
        (
            rule(
                "connection_string account_url",
                "Exactly one of connection_string or account_url must be set",
                lambda azure: (azure.get("connection_string") is None) != (azure.get("account_url") is None),
                final=True,
            ),
            rule(
                "credential connection_string",
                "credential and connection_string must not both be set",
                lambda azure: azure.get("credential") is None or azure.get("connection_string") is None,
            ),
        ),
    ),
}

CHECKPOINT_STORAGE = Union("type", RETENTION, TYPES, UNKNOWN)
TENSORBOARD_STORAGE = Union(
    "type", RETENTION, {name: TYPES[name] for name in ("s3", "gcs", "shared_fs")}, UNKNOWN
)
