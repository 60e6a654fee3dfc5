"""What a deployment is: the schema, the loader, and errors with file, line and key.

The public names are imported on first use: a program that needs the types of an SLA alone does
not pay for the YAML reader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from infra.spec.edit import set_value as set_value
    from infra.spec.loader import load as load
    from infra.spec.loader import load_all as load_all
    from infra.spec.loader import names as names
    from infra.spec.model import Deployment as Deployment

_HOMES = {
    "Deployment": "model",
    "load": "loader",
    "load_all": "loader",
    "names": "loader",
    "set_value": "edit",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
