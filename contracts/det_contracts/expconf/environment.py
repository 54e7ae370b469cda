"""The environment of the entrypoint: images, variables, ports (configuration spec, section 2.6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from det_contracts.expconf.composites import Field, ListOf, MapOf, Record, append_missing_by, low_first
from det_contracts.expconf.pod_spec import POD_SPEC
from det_contracts.expconf.scalars import BadForm, Boolean, Integer, MultiForm, Text

DEVICES = ("cpu", "cuda", "rocm")
DEFAULT_IMAGES = {device: f"steadfast/trial:{device}" for device in DEVICES}
BAD_IMAGE = "is neither a string nor a map of cpu, cuda, or rocm to strings"
BAD_VARIABLES = "is neither a list of strings nor a map of cpu, cuda, or rocm to lists of strings"


def _by_device(value: Any, fits: Callable[[Any], bool], message: str) -> dict[str, Any]:
    """Return the map, reading the old name `gpu` as `cuda` if that is absent. Raises `BadForm`."""
    if not isinstance(value, dict):
        raise BadForm(message)
    devices = {key: item for key, item in value.items() if key != "gpu" and item is not None}
    if value.get("gpu") is not None:
        devices.setdefault("cuda", value["gpu"])
    if not devices.keys() <= set(DEVICES) or not all(map(fits, devices.values())):
        raise BadForm(message)
    return devices


def _is_string(value: object) -> bool:
    return isinstance(value, str)


def _is_strings(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_string, value))


def expand_images(value: Any) -> Any:
    """Expand an image, or a map of images, to one image per kind of device. Raises `BadForm`."""
    images = dict.fromkeys(DEVICES, value) if isinstance(value, str) else value
    return _by_device(images, _is_string, BAD_IMAGE)


def _pairs_to_list(value: Any) -> Any:
    """Convert `{NAME: value}` to a list; return anything else unchanged. Raises `BadForm`."""
    # A map with the name of a device is the form by device; a variable called `cpu` cannot be given in this
    # form.
    if not isinstance(value, dict) or not value or value.keys() & {*DEVICES, "gpu"}:
        return value
    if not all(isinstance(entry, str | int | float) for entry in value.values()):
        raise BadForm(BAD_VARIABLES)
    if not all(isinstance(name, str) and name and "=" not in name for name in value):
        raise BadForm(BAD_VARIABLES)
    return [f"{name}={_format_variable(entry)}" for name, entry in value.items()]


def _format_variable(value: str | int | float) -> str:
    # YAML's `true` would be `True`, which no shell script compares with.
    return str(value).lower() if isinstance(value, bool) else str(value)


def expand_variables(value: Any) -> Any:
    """Expand variables (a list, map of lists, or names with values) to a list of `NAME=VALUE` per device."""
    value = _pairs_to_list(value)
    lists = dict.fromkeys(DEVICES, value) if isinstance(value, list) else value
    return _by_device(lists, _is_strings, BAD_VARIABLES)


TEXT = Field(Text())
CAPABILITIES = Field(ListOf(Text()), [])
IMAGE = Record({device: Field(Text(), DEFAULT_IMAGES[device]) for device in DEVICES})
VARIABLES = Record({device: Field(ListOf(Text(), low_first), []) for device in DEVICES})
CREDENTIALS = ("password", "auth", "identitytoken", "registrytoken")
REGISTRY_AUTH = Record({name: TEXT for name in ("username", "email", "serveraddress", *CREDENTIALS)})
PROXY_PORT = Record(
    {
        "proxy_port": Field(Integer(1, 65535), needed="now"),
        "proxy_tcp": Field(Boolean(), False),
        "unauthenticated": Field(Boolean(), False),
        "default_service_id": Field(Boolean(), False),
    }
)

ENVIRONMENT = Record(
    {
        "image": Field(MultiForm(expand_images, IMAGE), {}),
        "environment_variables": Field(MultiForm(expand_variables, VARIABLES), {}),
        "force_pull_image": Field(Boolean(), False),
        "registry_auth": Field(REGISTRY_AUTH),
        "ports": Field(MapOf(Integer()), {}),
        "proxy_ports": Field(ListOf(PROXY_PORT, append_missing_by("proxy_port")), []),
        "add_capabilities": CAPABILITIES,
        "drop_capabilities": CAPABILITIES,
        "pod_spec": Field(POD_SPEC),
        # No default: null leaves it to the worker's own setting.
        "warm": Field(Boolean()),
    }
)
