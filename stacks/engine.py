"""The engine seam: the only module that names the CDK package.

``SPECRACK_CDK=cdktf`` (the default; archived upstream in December 2025, frozen at 0.21) or
``cdktn`` (the maintained fork, a superset). Both synthesize the same Terraform JSON from this
code; a test compares them.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

from infra.errors import InputError, ToolError

CHOICE = "SPECRACK_CDK"
ENGINES = ("cdktf", "cdktn")

if TYPE_CHECKING:
    import cdktf as cdk
else:
    _name = os.environ.get(CHOICE, "cdktf")
    if _name not in ENGINES:
        raise InputError(f"{CHOICE}={_name}: unknown", do=f"use one of {', '.join(ENGINES)}")
    try:
        cdk = importlib.import_module(_name)
    except ModuleNotFoundError as error:
        raise ToolError(
            f"{CHOICE}={_name}: the package is not installed", do=f"pip install {_name}"
        ) from error

__all__ = ["cdk"]
