"""Text -> a tree of YAML nodes that know their lines and spans.

Built from ruamel's parser events, without recursion, so that nesting cannot exhaust the stack;
without tags, anchors and aliases, so that a file means what it shows and cannot grow when read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from infra.spec import syntax
from infra.spec.scalars import Scalar, parse_plain
from infra.spec.text import Fault

MAX_DEPTH = 32
Path = tuple[str, ...]


@dataclass(slots=True)
class Node:
    """A value. ``line``: 1-based, of its key if it has one. ``start``, ``end``: its characters."""

    line: int
    start: int
    end: int


@dataclass(slots=True)
class Leaf(Node):
    """A scalar. ``style``: None for plain, else the quote or block sign."""

    value: Scalar
    style: str | None


@dataclass(slots=True)
class Branch(Node):
    """A mapping (``is_list`` false) or a list, whose keys are then "0", "1", ..."""

    is_list: bool
    flow: bool
    column: int
    items: dict[str, Node] = field(default_factory=dict)


class _Broken:
    """Stands for a value with a fault of its own, so that no type takes it."""

    def __repr__(self) -> str:
        return "BROKEN"


BROKEN = _Broken()


@dataclass(slots=True)
class Document:
    """A parsed file: the root (None when there is none) and what is wrong with the YAML itself."""

    text: str
    root: Node | None = None
    faults: list[Fault] = field(default_factory=list)

    def data(self) -> Any:
        """The document as dicts, lists and scalars; BROKEN where a node has a fault."""
        broken = {fault.path for fault in self.faults}
        return _data(self.root, (), broken)

    def node(self, path: Path) -> Node | None:
        """The node at ``path``, or the deepest one above it that exists."""
        node = self.root
        for key in path:
            below = node.items.get(key) if isinstance(node, Branch) else None
            if below is None:
                break
            node = below
        return node

    def line_of(self, path: Path) -> int | None:
        """The line of the key at ``path``, or of the nearest mapping above it that exists."""
        node = self.node(path)
        return None if node is None else node.line


def _data(node: Node | None, path: Path, broken: set[Path]) -> Any:
    # Recursion is bounded by MAX_DEPTH.
    if path in broken and path:
        return BROKEN
    if isinstance(node, Leaf):
        return node.value
    if isinstance(node, Branch):
        values = {key: _data(below, (*path, key), broken) for key, below in node.items.items()}
        return list(values.values()) if node.is_list else values
    return None


def parse(text: str) -> Document:
    """Parse ``text``. Never raises: what is wrong is in ``faults``."""
    document = Document(text)
    last_line = max(1, len(text.splitlines()))
    builder = _Builder(document, last_line)
    events = YAML(typ="safe", pure=True).parse(text)
    going = True
    while going:
        try:
            event = next(events, None)
        except MarkedYAMLError as error:
            document.faults.append(syntax.explain(error, last_line=last_line))
            break
        except (YAMLError, ValueError, AssertionError, LookupError, TypeError, AttributeError):
            # ruamel's scanner trips over some malformed texts instead of refusing them.
            document.faults.append(Fault(last_line, (), "is not valid YAML"))
            break
        going = event is not None and builder.take(event)
    return document


@dataclass(slots=True)
class _Open:
    """A branch being read. ``key``: of the value that comes next."""

    branch: Branch
    path: Path
    key: str | None = None
    key_line: int = 0
    key_end: int = 0


class _Builder:
    def __init__(self, document: Document, last_line: int) -> None:
        self._document = document
        self._last_line = last_line
        self._open: list[_Open] = []

    def take(self, event: Any) -> bool:
        """Add one parser event. False: the rest is of no use."""
        kind = type(event).__name__
        if kind == "DocumentStartEvent":
            return self._document_start(event)
        if kind in ("StreamStartEvent", "StreamEndEvent", "DocumentEndEvent"):
            return True
        if kind.endswith("EndEvent"):
            self._close(event)
            return True
        return self._node(event, kind)

    def _document_start(self, event: Any) -> bool:
        line = self._line(event)
        if self._document.root is not None:
            self._fault(line, (), "holds more than one YAML document (---); keep one")
            return False
        if event.version and tuple(event.version) != (1, 2):
            self._fault(line, (), "asks for another YAML version; only YAML 1.2 is read")
        return True

    def _node(self, event: Any, kind: str) -> bool:
        line, at = self._line(event), self._open[-1] if self._open else None
        if at and not at.branch.is_list and at.key is None:
            return self._key(at, event, kind, line)
        path = (*at.path, self._key_of(at)) if at else ()
        self._refuse_magic(event, kind, line, path)
        node_line = at.key_line if at and not at.branch.is_list else line
        start, end = event.start_mark.index, event.end_mark.index
        if kind in ("MappingStartEvent", "SequenceStartEvent"):
            if len(self._open) >= MAX_DEPTH:
                self._fault(line, (), f"is nested deeper than {MAX_DEPTH} levels")
                return False
            is_list = kind == "SequenceStartEvent"
            column = event.start_mark.column
            branch = Branch(node_line, start, end, is_list, bool(event.flow_style), column)
            self._attach(at, branch)
            self._open.append(_Open(branch, path))
            return True
        value: Scalar = None
        style = getattr(event, "style", None)
        if kind == "ScalarEvent":
            try:
                value = event.value if style else parse_plain(event.value)
            except ValueError as error:
                self._fault(node_line, path, str(error))
        if start == end and at and not at.branch.is_list:
            # ruamel places an empty value at the next token; it belongs behind its colon.
            start = end = max(self._document.text.find(":", at.key_end) + 1, at.key_end)
        self._attach(at, Leaf(node_line, start, end, value, style))
        return True

    def _key(self, at: _Open, event: Any, kind: str, line: int) -> bool:
        if kind != "ScalarEvent":
            self._fault(line, at.path, "holds a key that is no plain text")
            return False  # what such a key and its value mean, nobody needs to know
        key = event.value
        path = (*at.path, key)
        self._refuse_magic(event, kind, line, path)
        if key == "<<" and not event.style:
            self._fault(line, path, "is a merge key; write the values out")
        elif key in at.branch.items:
            first = at.branch.items[key].line
            self._fault(line, path, f"is given twice, first on line {first}")
        elif not event.style and not _is_text(key):
            self._fault(line, path, "is no text; put the key in quotes")
        at.key, at.key_line, at.key_end = key, line, event.end_mark.index
        return True

    def _key_of(self, at: _Open) -> str:
        if at.branch.is_list:
            return str(len(at.branch.items))
        return at.key or ""

    def _attach(self, at: _Open | None, node: Node) -> None:
        if at is None:
            self._document.root = node
            return
        at.branch.items.setdefault(self._key_of(at), node)
        at.key = None

    def _close(self, event: Any) -> None:
        self._open.pop().branch.end = event.end_mark.index

    def _refuse_magic(self, event: Any, kind: str, line: int, path: Path) -> None:
        if kind == "AliasEvent":
            self._fault(line, path, f"is an alias (*{event.anchor[:40]}); write the value out")
            return
        if event.anchor is not None:
            self._fault(
                line, path, f"has an anchor (&{event.anchor[:40]}); aliases are not supported"
            )
        tag = getattr(event, "ctag", None)
        if tag is not None and str(tag) != "!":
            self._fault(line, path, "has a YAML tag (!...); write the plain value")

    def _line(self, event: Any) -> int:
        # An empty value is placed at the next token, which may be the end of the text.
        return min(int(event.start_mark.line) + 1, self._last_line)

    def _fault(self, line: int, path: Path, what: str) -> None:
        self._document.faults.append(Fault(line, path, what))


def _is_text(plain: str) -> bool:
    try:
        return isinstance(parse_plain(plain), str)
    except ValueError:
        return False
