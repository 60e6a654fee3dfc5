"""Where Terraform's state is kept: this machine, or an S3 bucket named in ``cdktf.json``.

.. code-block:: json

    {"context": {"specrack": {"backend": {"bucket": "acme-tf-state", "region": "us-east-1"}}}}
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from infra.errors import InputError

FILE = "cdktf.json"
PLACE = f"{FILE}: context.specrack.backend"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_REGION = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d")
_KEYS = frozenset({"bucket", "region", "kms_key"})


@dataclass(frozen=True, slots=True)
class Backend:
    """``local``, or ``s3`` with a bucket and a region. ``kms_key``: an ARN, else SSE-S3."""

    kind: Literal["local", "s3"] = "local"
    bucket: str | None = None
    region: str | None = None
    kms_key: str | None = None

    def key_of(self, stack_key: str) -> str:
        """The object that holds the state of a stack."""
        return f"specrack/{stack_key}.tfstate"


LOCAL = Backend()


def read(root: Path) -> Backend:
    """The backend of the project at ``root``. Raises InputError for a faulty entry."""
    try:
        content: Any = json.loads((root / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return LOCAL
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{FILE}: cannot be read: {error}") from None
    entry: Any = content
    for key in ("context", "specrack", "backend"):
        entry = entry.get(key) if isinstance(entry, dict) else None
    return LOCAL if entry is None else parse(entry)


def parse(entry: Any) -> Backend:
    """The backend that an entry of ``cdktf.json`` names. Raises InputError."""
    if not isinstance(entry, dict) or not set(entry) <= _KEYS:
        raise InputError(f"{PLACE}: must hold bucket, region and perhaps kms_key, nothing else")
    bucket, region, kms_key = (entry.get(key) for key in ("bucket", "region", "kms_key"))
    if not isinstance(bucket, str) or not _BUCKET.fullmatch(bucket):
        raise InputError(f"{PLACE}.bucket: must be the name of an S3 bucket, got {bucket!r}")
    if not isinstance(region, str) or not _REGION.fullmatch(region):
        raise InputError(f"{PLACE}.region: must be a region such as us-east-1, got {region!r}")
    if kms_key is not None and not (isinstance(kms_key, str) and kms_key.startswith("arn:")):
        raise InputError(f"{PLACE}.kms_key: must be the ARN of a key, got {kms_key!r}")
    return Backend("s3", bucket, region, kms_key)
