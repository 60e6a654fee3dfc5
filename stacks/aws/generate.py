"""``make aws-bindings``: provider schemas -> ``schema/common.json`` and ``resources.pyi``.

Reads the schema of the installed 5.x provider (``terraform providers schema -json``) and, from
``schema/aws-6.25.json``, that of 6.25 for the same types. What both have is kept, so that a stack
is valid on either. The 6.25 file was recovered from that version's CDKTF bindings: it does not
tell "optional" from "optional and computed"; the 5.x schema decides that.
"""

from __future__ import annotations

import argparse
import gzip
import json
import keyword
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stacks.aws.names import block_class, class_of

HERE = Path(__file__).parent
TYPES, COMMON, LATER = (
    HERE / "types.txt",
    HERE / "schema/common.json",
    HERE / "schema/aws-6.25.json",
)
STUB = HERE / "resources.pyi"
VERSION = "5.100.0"
#: Not arguments that a stack sets: they are Terraform's own.
DROPPED = frozenset({"id", "tags_all"})

Raw = dict[str, Any]


def wanted(text: str) -> list[tuple[str, str]]:
    """The lines of ``types.txt`` as (kind, type)."""
    found = []
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if words:
            found.append(("data" if words[0] == "data" else "resource", words[-1]))
    return found


def provider_schema(version: str = VERSION) -> Raw:
    """The whole schema of the provider, from Terraform itself."""
    with tempfile.TemporaryDirectory() as folder:
        configuration = {
            "terraform": {
                "required_providers": {"aws": {"source": "hashicorp/aws", "version": version}}
            }
        }
        (Path(folder) / "main.tf.json").write_text(json.dumps(configuration), encoding="utf-8")
        environment = {**os.environ, "CHECKPOINT_DISABLE": "1"}
        subprocess.run(["terraform", "init"], cwd=folder, check=True, env=environment,
                       stdout=subprocess.DEVNULL)  # fmt: skip
        done = subprocess.run(["terraform", "providers", "schema", "-json"], cwd=folder, check=True,
                              env=environment, stdout=subprocess.PIPE)  # fmt: skip
    provider: Raw = next(iter(json.loads(done.stdout)["provider_schemas"].values()))
    return {
        "resource": provider["resource_schemas"],
        "data": provider["data_source_schemas"],
        "provider": {"aws": provider["provider"]},
    }


def reduced(schema: Raw, types: list[tuple[str, str]]) -> Raw:
    """Only ``types`` (and the provider) of a schema, without descriptions."""
    kept: Raw = {
        "resource": {},
        "data": {},
        "provider": {"aws": _bare(schema["provider"]["aws"]["block"])},
    }
    for kind, name in types:
        shape = _bare(schema[kind][name]["block"])
        for own in DROPPED & shape["a"].keys():
            shape["a"][own][1] = "c"
        kept[kind][name] = shape
    return kept


def _bare(block: Raw) -> Raw:
    """A block in the short form of ``schema/common.json``."""
    attributes = {}
    for name, attribute in sorted(block.get("attributes", {}).items()):
        flags = "".join(
            letter
            for letter, word in (("r", "required"), ("o", "optional"), ("c", "computed"))
            if attribute.get(word)
        )
        if attribute.get("deprecated"):
            # Goes away in a later major: may be read where AWS fills it, never given.
            if "c" not in flags:
                continue
            flags = "c"
        attributes[name] = [_type_of(attribute), flags]
    blocks = {
        name: [
            raw["nesting_mode"],
            raw.get("min_items", 0),
            raw.get("max_items", 0),
            _bare(raw["block"]),
        ]
        for name, raw in sorted(block.get("block_types", {}).items())
        if name != "timeouts" and not raw["block"].get("deprecated")
    }
    return {"a": attributes, "b": blocks} if blocks else {"a": attributes}


def _type_of(attribute: Raw) -> Any:
    if "type" in attribute:
        return attribute["type"]
    nested = attribute["nested_type"]
    inner = ["object", {name: _type_of(below) for name, below in nested["attributes"].items()}]
    return inner if nested["nesting_mode"] == "single" else [nested["nesting_mode"], inner]


def common(first: Raw, later: Raw) -> Raw:
    """What two blocks in short form share. An argument that either requires is required."""
    attributes = {}
    for name, (type_, flags) in first["a"].items():
        other = later["a"].get(name)
        if other is None:
            continue
        if "r" in other[1] and flags != "c":
            flags = "r"
        if other[1] == "c":
            flags = "c"
        attributes[name] = [type_, flags]
    blocks: Raw = {}
    for name, (mode, least, most, inner) in first.get("b", {}).items():
        other = later.get("b", {}).get(name)
        if other is not None:
            blocks[name] = [mode, max(least, other[1]), most, common(inner, other[3])]
        elif name in later["a"] and later["a"][name][1] != "c":
            # The later provider takes the same argument as a list of objects.
            blocks[name] = [mode, least, most, inner]
    for name, (type_, flags) in first["a"].items():
        if name in later.get("b", {}) and flags != "c":
            attributes[name] = [type_, flags]
    return {"a": attributes, "b": blocks} if blocks else {"a": attributes}


def both(first: Raw, later: Raw) -> Raw:
    """``common`` for every type."""
    return {
        kind: {name: common(block, later[kind][name]) for name, block in types.items()}
        for kind, types in first.items()
    }


# --- the stub ------------------------------------------------------------------------------------

HEAD = '''"""Resource types of the AWS provider. Generated by `make aws-bindings`: do not edit."""

from collections.abc import Mapping, Sequence
from typing import Any

from constructs import Construct

from stacks.aws.core import Block, DataSource, Ref, Resource
from stacks.engine import cdk
'''


def stub(schema: Raw) -> Iterator[str]:
    """The lines of ``resources.pyi``."""
    yield HEAD
    for kind in ("resource", "data"):
        for type_, block in schema[kind].items():
            yield from _class(kind, type_, block)


def _class(kind: str, type_: str, block: Raw) -> Iterator[str]:
    name = class_of(kind, type_)
    for key, (_, _, _, inner) in block.get("b", {}).items():
        yield from _block_class(block_class(name, key), f"{type_}: {key}", inner)
    base = "DataSource" if kind == "data" else "Resource"
    yield f"\nclass {name}({base}):"
    yield f'    """``{"data." if kind == "data" else ""}{type_}``."""\n'
    yield "    def __init__("
    yield "        self,"
    yield "        scope: Construct,"
    yield "        id_: str,"
    yield "        /,"
    yield "        *,"
    yield from _parameters(name, block)
    yield "        depends_on: Sequence[cdk.ITerraformDependable] | None = None,"
    if kind == "resource":
        yield "        lifecycle: Mapping[str, Any] | None = None,"
    yield "    ) -> None:"
    yield from _docstring(block)
    for key in [*block["a"], *block.get("b", {})]:
        yield "    @property"
        yield f"    def {key}(self) -> Ref: ..."


def _block_class(name: str, title: str, block: Raw) -> Iterator[str]:
    for key, (_, _, _, inner) in block.get("b", {}).items():
        yield from _block_class(block_class(name, key), f"{title}.{key}", inner)
    yield f"\nclass {name}(Block):"
    yield f'    """Block of ``{title}``."""\n'
    yield "    def __init__("
    yield "        self,"
    parameters = list(_parameters(name, block))
    if parameters:
        yield "        *,"
    yield from parameters
    yield "    ) -> None:"
    yield from _docstring(block)


def _parameters(owner: str, block: Raw) -> Iterator[str]:
    given = {key: value for key, value in block["a"].items() if value[1] != "c"}
    blocks = block.get("b", {})
    needed = [key for key, (_, flags) in given.items() if "r" in flags]
    rest = [key for key in given if key not in needed]
    for key in needed:
        yield f"        {_name(key)}: {_python(given[key][0])},"
    for key in blocks:
        if blocks[key][1]:
            yield f"        {_name(key)}: {_of_blocks(owner, key, blocks[key])},"
    for key in rest:
        yield f"        {_name(key)}: {_python(given[key][0])} | None = None,"
    for key in blocks:
        if not blocks[key][1]:
            yield f"        {_name(key)}: {_of_blocks(owner, key, blocks[key])} | None = None,"


def _name(key: str) -> str:
    """A name that Python takes: ``and_`` for ``and``."""
    return f"{key}_" if keyword.iskeyword(key) else key


def _of_blocks(owner: str, key: str, entry: Any) -> str:
    mode, _, most, _ = entry
    name = block_class(owner, key)
    return name if most == 1 or mode == "single" else f"{name} | Sequence[{name}]"


def _python(type_: Any) -> str:
    match type_:
        case "string":
            return "str"
        case "number":
            return "float | Ref"
        case "bool":
            return "bool | Ref"
        case ["list" | "set", inner]:
            return f"Sequence[{_python(inner)}] | Ref"
        case ["map", inner]:
            return f"Mapping[str, {_python(inner)}] | Ref"
        case ["object", _]:
            return "Mapping[str, Any]"
    return "Any"


def _docstring(block: Raw) -> Iterator[str]:
    given = [(key, *value) for key, value in block["a"].items() if value[1] != "c"]
    lines = []
    for key, type_, flags in given:
        needed = ", required" if "r" in flags else ""
        chosen = ", chosen by AWS when left out" if flags == "oc" else ""
        lines.append(f"{key}: {_words(type_)}{needed}{chosen}")
    for key, (_, least, most, _) in block.get("b", {}).items():
        bounds = f", at least {least}" if least else ""
        lines.append(f"{key}: block{bounds}" + (f", at most {most}" if most else ""))
    if not lines:
        yield "        ..."
        return
    yield f'        """{lines[0]}'
    for line in lines[1:]:
        yield f"        {line}"
    yield '        """'


def _words(type_: Any) -> str:
    match type_:
        case "string":
            return "text"
        case "number":
            return "number"
        case "bool":
            return "true or false"
        case ["list" | "set" as kind, inner]:
            return f"{kind} of {_words(inner)}"
        case ["map", inner]:
            return f"map of {_words(inner)}"
        case ["object", fields]:
            return f"object of {', '.join(fields)}"
    return str(type_)


def main(argv: list[str]) -> int:
    """Write the generated files; ``--check``: say whether they would change; ``--later FILE``:
    take the schema of 6.25 for the wanted types from a whole recovered schema (.json.gz)."""
    parser = argparse.ArgumentParser(prog="python -m stacks.aws.generate", description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--later", type=Path)
    options = parser.parse_args(argv)
    types = wanted(TYPES.read_text(encoding="utf-8"))
    if options.later:
        with gzip.open(options.later) as file:
            LATER.write_text(_compact(reduced(json.load(file), types)), encoding="utf-8")
    later = json.loads(LATER.read_text(encoding="utf-8"))
    schema = both(reduced(provider_schema(), types), later)
    made = {COMMON: _compact(schema), STUB: "\n".join(stub(schema)) + "\n"}
    if options.check:
        stale = [
            path.name for path, text in made.items() if path.read_text(encoding="utf-8") != text
        ]
        if stale:
            names = ", ".join(stale)
            print(f"{names}: not what the schema gives; run make aws-bindings", file=sys.stderr)
        return 1 if stale else 0
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    return 0


def _compact(content: Raw) -> str:
    """One type a line, so that a change is a readable diff."""
    kinds = []
    for kind, types in content.items():
        rows = ",\n".join(
            f"{json.dumps(name)}:{json.dumps(block, separators=(',', ':'))}"
            for name, block in types.items()
        )
        kinds.append(f"{json.dumps(kind)}:{{\n{rows}}}")
    return "{" + ",\n".join(kinds) + "}\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
