"""``deployments/<name>.yaml`` -> ``Deployment``; all faults at once, with file, line and key."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from infra.errors import DeploymentError, InputError, Problem
from infra.spec import text as texts
from infra.spec.check import check_values
from infra.spec.model import (
    Deployment,
    Fleet,
    Network,
    NodeCount,
    Rule,
    Sla,
    Speculation,
    Weights,
)
from infra.spec.text import Fault, UnreadableError
from infra.spec.tree import Branch, Document, parse
from infra.spec.words import did_you_mean, dotted, one_line, shown, shown_text

FOLDER = "deployments"
SUFFIX = ".yaml"
LOCK_SUFFIX = ".lock.yaml"

#: Where each model with rules stands in the file.
_RULES: tuple[tuple[str, tuple[Rule, ...]], ...] = (
    ("", Deployment.RULES),
    ("serving.speculation.", Speculation.RULES),
    ("sla.", Sla.RULES),
    ("fleet.", Fleet.RULES),
    ("fleet.nodes.", NodeCount.RULES),
    ("aws.network.", Network.RULES),
    ("aws.weights.", Weights.RULES),
)


def load(path: Path, *, root: Path) -> Deployment:
    """The deployment in the file ``path``; problems name it relative to ``root``.

    Raises DeploymentError with all of the file's problems, by line.
    """
    reading = read(path, root=root)
    if reading.deployment is None:
        raise DeploymentError(reading.problems)
    return reading.deployment


def load_all(root: Path, names: Sequence[str] = ()) -> list[Deployment]:
    """The deployments of the project at ``root``: those in ``names``, or all, by name.

    Raises DeploymentError with the problems of all of these files at once (a name without a file
    is one), and InputError when there is no folder ``deployments/`` or nothing in it.
    """
    existing = _stems(root)
    problems: list[Problem] = []
    if not names:
        problems += _misnamed(root)
        if not existing and not problems:
            raise InputError(f"{FOLDER}/ holds no deployment", do=f"write {FOLDER}/<name>{SUFFIX}")
    deployments = []
    for name in dict.fromkeys(names or existing):
        if name not in existing:
            problems.append(_no_such(name, existing))
            continue
        reading = read(root / FOLDER / f"{name}{SUFFIX}", root=root)
        problems += reading.problems
        if reading.deployment is not None:
            deployments.append(reading.deployment)
    if problems:
        raise DeploymentError(problems)
    return deployments


def names(root: Path) -> list[str]:
    """The names of the project's deployment files, sorted, without looking into them.

    Raises InputError when there is no folder ``deployments/``.
    """
    return _stems(root)


@dataclass(frozen=True, slots=True)
class Reading:
    """A file as read: the deployment, or (then None) its problems by line; and the parsed text."""

    deployment: Deployment | None
    problems: tuple[Problem, ...]
    document: Document | None = None


def read(path: Path, *, root: Path) -> Reading:
    """Read one file. Never raises for what is in it, or that it is not there."""
    place = relative(path, root)
    try:
        text = texts.decode(texts.read_bytes(path))
    except UnreadableError as error:
        return Reading(None, _problems([error.fault], place))
    return read_text(text, place=place, stem=path.stem)


def read_text(text: str, *, place: str, stem: str) -> Reading:
    """``read`` for text that was decoded already. ``stem``: what ``name`` must equal."""
    document = parse(text)
    found = list(document.faults)
    deployment = None
    # Without a whole tree the keys that come later would all be called missing.
    if not any(fault.path == () for fault in found):
        if isinstance(document.root, Branch) and not document.root.is_list:
            deployment, more = _judge(document, stem)
            found += more
        else:
            what = "must hold a mapping (name: ..., tier: ...)"
            if document.root is None:
                found.append(Fault(None, (), f"{what}, got nothing"))
            else:
                line = document.root.line
                found.append(Fault(line, (), f"{what}, got {shown(document.data())}"))
    if found:
        return Reading(None, _problems(found, place), document)
    return Reading(deployment, (), document)


def relative(path: Path, root: Path) -> str:
    """``path`` as seen from ``root``, for messages."""
    try:
        return str(Path(os.path.abspath(path)).relative_to(os.path.abspath(root)))  # noqa: PTH100
    except ValueError:  # not below root, or no file name at all
        return str(path)


class _UnknownError(Exception):
    """A value that has a fault of its own; no rule can be judged with it."""


def _judge(document: Document, stem: str) -> tuple[Deployment | None, list[Fault]]:
    data = document.data()
    found: list[Fault] = []
    deployment = None
    bad = {fault.path for fault in document.faults}
    try:
        deployment = Deployment.model_validate(data)
    except ValidationError as error:
        # Imported where something is wrong: the good path is to be fast.
        from infra.spec.explain import faults as explained

        details = explained(error)
        # A misspelt key is said once: not also that the right one is missing.
        bad |= {about for path, about, _ in details if path != about}
        for path, _, what in details:
            if not _below(path, bad):
                found.append(Fault(document.line_of(path), path, what))
        bad |= {path for path, _, _ in details}
    get = _reader(data, bad)
    for key, what in _cross(get, stem):
        path = tuple(key.split(".")) if key else ()
        found.append(Fault(document.line_of(path), path, what))
    return deployment, found


def _below(path: tuple[str, ...], bad: set[tuple[str, ...]]) -> bool:
    return any(path[:length] in bad for length in range(1, len(path) + 1))


def _reader(data: Any, bad: set[tuple[str, ...]]) -> Callable[[str], Any]:
    """Values by dotted key; None for an optional key left out. Raises _UnknownError."""

    def get(key: str) -> Any:
        path = tuple(key.split("."))
        if _below(path, bad):
            raise _UnknownError
        value = data
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        return value

    return get


def _below_prefix(get: Callable[[str], Any], prefix: str) -> Callable[[str], Any]:
    return lambda key: get(prefix + key)


def _cross(get: Callable[[str], Any], stem: str) -> list[tuple[str, str]]:
    """(dotted key, what) for all that needs more than one key, or the catalogue."""
    found = []
    for prefix, rules in _RULES:
        for rule in rules:
            try:
                broken = rule(_below_prefix(get, prefix))
            except _UnknownError:
                continue
            if broken is not None:
                found.append((f"{prefix}{broken[0]}".rstrip("."), broken[1]))

    def known(key: str) -> str | None:
        try:
            value = get(key)
        except _UnknownError:
            return None
        return value if isinstance(value, str) else None

    name = known("name")
    if name is not None and name != stem:
        found.append(("name", f"must be {shown_text(stem)} like the file's name, got {name!r}"))
    found += check_values(tier=known("tier"), site=known("site"), engine=known("serving.engine"))
    return found


def _problems(found: Sequence[Fault], place: str) -> tuple[Problem, ...]:
    ordered = sorted(found, key=lambda fault: (fault.line or 0, fault.path, fault.what))
    return tuple(
        Problem(place, fault.line, dotted(fault.path), one_line(fault.what)) for fault in ordered
    )


def _entries(root: Path, suffix: str) -> list[Path]:
    folder = root / FOLDER
    try:
        entries = sorted(folder.iterdir())
    except FileNotFoundError:
        raise InputError(
            f"no folder {FOLDER}/ in {root}", do=f"make it, with a file {FOLDER}/<name>{SUFFIX}"
        ) from None
    except OSError as error:
        raise InputError(f"{FOLDER}/: cannot be read: {error.strerror or error}") from None
    # Hidden files are an editor's, or being written; lock files are ours (infra/lock.py).
    return [
        entry
        for entry in entries
        if entry.suffix == suffix and entry.name[0] != "." and not entry.name.endswith(LOCK_SUFFIX)
    ]


def _stems(root: Path) -> list[str]:
    return [entry.stem for entry in _entries(root, SUFFIX)]


def _misnamed(root: Path) -> list[Problem]:
    return [
        Problem(relative(entry, root), None, "", f"is not read; rename it to {entry.stem}{SUFFIX}")
        for entry in _entries(root, ".yml")
    ]


def _no_such(name: str, existing: Sequence[str]) -> Problem:
    place = dotted((FOLDER,))
    hint = did_you_mean(name, existing)
    listed = f" There are: {', '.join(existing)}" if hint.startswith("did") else ""
    return Problem(f"{place}/", None, "", f"no deployment {shown_text(name)}, {hint}{listed}")
