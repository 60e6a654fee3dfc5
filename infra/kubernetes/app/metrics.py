"""Metrics of several engines as one page of Prometheus text.

Each series gets a label ``replica``; a family's lines stand together, as the format demands.
Counters of different replicas stay apart: whoever wants one number adds them up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_SAMPLE = re.compile(r"^([A-Za-z_:][\w:]*)(\{.*\})?(\s.*)$", re.ASCII)
#: Endings of a family's own series.
_ENDINGS = ("_total", "_bucket", "_count", "_sum", "_created", "_info")


def merged(pages: Mapping[str, str]) -> str:
    """``pages`` by replica, as one page. Lines that are no metrics are left out."""
    headers: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for replica, page in pages.items():
        family = ""
        for line in page.splitlines():
            if line.startswith("#"):
                words = line.split(maxsplit=3)
                if len(words) < 3 or words[1] not in ("HELP", "TYPE", "UNIT"):
                    continue
                family = words[2]
                kept = headers.setdefault(family, [])
                if not any(old.split(maxsplit=3)[1] == words[1] for old in kept):
                    kept.append(line)
                continue
            found = _SAMPLE.match(line)
            if found is None:
                continue
            name, labels, rest = found.groups()
            if not _belongs(name, family):
                family = name
            headers.setdefault(family, [])
            samples.setdefault(family, []).append(f"{name}{_with(labels, replica)}{rest}")
    lines = [line for family in headers for line in (*headers[family], *samples.get(family, ()))]
    return "\n".join(lines) + "\n" if lines else ""


def _belongs(name: str, family: str) -> bool:
    base = family.removesuffix("_total")
    return name in (family, base) or any(name == f"{base}{ending}" for ending in _ENDINGS)


def _with(labels: str | None, replica: str) -> str:
    ours = f'replica="{_escaped(replica)}"'
    inner = (labels or "{}")[1:-1].rstrip(", ")
    return f"{{{ours},{inner}}}" if inner else f"{{{ours}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
