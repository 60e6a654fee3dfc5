"""Find what a deploy made that was cut off, and that no state knows.

Given the stack that is wanted (Terraform JSON) and the state: for each resource that the state does
not have, is there such an object already? Terraform would create it again, twice of what has no
name of its own, and stop at what has one. Objects that are found are taken over by import.

Ours is what bears the stack's tags; what bears none of our tags and was made since the first deploy
that was cut off (the cut may come between a creation and its tags); and what hangs on an object
of ours and takes no tags.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from infra.aws.faults import telling
from infra.aws.finders import (
    ADDRESS_TAG,
    COUNTED,
    FINDERS,
    HARMLESS,
    STACK_TAG,
    Found,
    Where,
    all_of_stack,
)
from infra.aws.session import client
from infra.errors import EXIT_FAILED, SpecrackError

Say = Callable[[str], None]
#: How long objects that AWS still makes are waited for: a cluster takes a quarter of an hour.
PENDING_S = 45 * 60.0
POLL_S = 10.0
#: Clocks differ.
SLACK = timedelta(minutes=2)
_REFERENCE = re.compile(r"\$\{\s*((?:data\.)?[a-z0-9_]+)\.([\w-]+)\.([\w.\[\]]+?)\s*\}")


class AdoptionError(SpecrackError):
    """What is there does not fit one stack."""

    code = "adoption"
    exit_status = EXIT_FAILED


@dataclass(frozen=True, slots=True)
class Object:
    """An object to take over."""

    address: str
    import_id: str


@dataclass(frozen=True, slots=True)
class Result:
    """What was found. ``strangers``: lines about objects that are in the way or one too many, and
    that are left alone."""

    objects: tuple[Object, ...]
    strangers: tuple[str, ...] = ()


@dataclass
class _Search:
    where: Where
    #: What is wanted: arguments by address.
    wanted: Mapping[str, Mapping[str, Any]]
    #: Attributes of what is known, by address: from the state, then from what was found.
    known: dict[str, Mapping[str, Any]]
    since: datetime
    say: Say
    deadline: float
    found: dict[str, Found] = field(default_factory=dict)
    strangers: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Look for everything whose references lead to what is known, until nothing is new."""
        open_ = [address for address in self.wanted if address not in self.known]
        while True:
            before = len(self.found)
            left = []
            for address in open_:
                arguments = self._filled(self.wanted[address])
                if arguments is None:
                    left.append(address)
                else:
                    self._look(address, arguments)
            if len(self.found) == before or not left:
                return
            open_ = left

    def _look(self, address: str, arguments: Mapping[str, Any]) -> None:
        kind = address.partition(".")[0]
        find = FINDERS.get(kind)
        if find is None:
            return
        told = False
        while True:
            seen = list(find(self.where, address, arguments))
            ours = [one for one in seen if self._is_ours(one)]
            if not any(one.pending for one in ours):
                break
            if not told:
                told = True
                self.say(f"AWS is still making {address}, {ours[0].import_id}; waiting for it")
            if time.monotonic() > self.deadline:
                raise AdoptionError(
                    f"{address}: AWS is still making {ours[0].import_id}",
                    do="run the same command again later",
                )
            time.sleep(POLL_S)
        if len(ours) > 1:
            ids = ", ".join(one.import_id for one in ours)
            raise AdoptionError(
                f"{address}: there are {len(ours)} of it ({ids}), of which a stack can know one",
                do="remove all but one of them, then run the same command again",
            )
        if ours:
            self.found[address] = ours[0]
            self.known[address] = {**arguments, **ours[0].attributes}
            return
        for one in seen:
            owner = (one.tags or {}).get(STACK_TAG)
            whose = f"belongs to the stack {owner}" if owner else "does not bear our tags"
            self.strangers.append(
                f"{kind} {one.import_id} is in the way of {address}: it was there before and "
                f"{whose}; it is left alone"
            )

    def _is_ours(self, one: Found) -> bool:
        if one.tags is None:
            return True
        owner = one.tags.get(STACK_TAG)
        if owner is not None:
            return owner == self.where.stack_key
        young = one.created is not None and one.created >= self.since - SLACK
        return young and ADDRESS_TAG not in one.tags

    def _filled(self, value: Any) -> Any:
        """``value`` with every reference replaced; None when one leads to what is not known."""
        if isinstance(value, Mapping):
            filled = {}
            for key, below in value.items():
                if key in ("depends_on", "lifecycle", "provisioner", "//"):
                    continue
                got = self._filled(below)
                if got is None and below is not None and key in _needed(value):
                    return None
                filled[key] = got
            return filled
        if isinstance(value, str):
            return self._text(value)
        return value

    def _text(self, text: str) -> str | None:
        missing = False

        def put(match: re.Match[str]) -> str:
            nonlocal missing
            got = self._attribute(f"{match[1]}.{match[2]}", match[3])
            if got is None:
                missing = True
                return ""
            return got

        filled = _REFERENCE.sub(put, text)
        return None if missing or "${" in filled else filled

    def _attribute(self, address: str, attribute: str) -> str | None:
        if address in self.known:
            got = _dig(self.known[address], attribute)
            if isinstance(got, str | int) and not isinstance(got, bool):
                return self._text(str(got))
        # A name that stands in the stack is known before the object is.
        literal = self.wanted.get(address, {}).get(attribute)
        return self._text(literal) if isinstance(literal, str) else None


#: The arguments that finders read; a reference in any other may stay open.
_KEYS = frozenset(
    {
        "addon_name", "bucket", "cidr_ipv4", "cidr_ipv6", "cluster_name",
        "destination_cidr_block", "destination_ipv6_cidr_block", "destination_prefix_list_id",
        "file_system_id", "file_system_path", "group_name", "ip_protocol", "name", "namespace",
        "node_group_name", "prefix_list_id", "principal_arn", "referenced_security_group_id",
        "route_table_id", "security_group_id", "service_account", "subnet_id", "url",
    }
)  # fmt: skip


def _needed(arguments: Mapping[str, Any]) -> frozenset[str]:
    return _KEYS & arguments.keys()


def _dig(attributes: Mapping[str, Any], path: str) -> Any:
    """``vpc_config[0].vpc_id`` in a state's attributes, or that very key."""
    if path in attributes:
        return attributes[path]
    value: Any = attributes
    for part in re.findall(r"[^.\[\]]+", path):
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, Mapping):
            value = value.get(part)
        else:
            return None
    return value


def find(
    stack: Mapping[str, Any],
    state: Mapping[str, Any] | None,
    *,
    region: str,
    stack_key: str,
    since: datetime,
    say: Say = lambda _: None,
    pending_s: float = PENDING_S,
) -> Result:
    """What is there of ``stack`` and not in ``state``. ``since``: when the first of the deploys
    began that did not end well.

    Waits for objects that AWS still makes, up to ``pending_s``. Raises AdoptionError for two
    objects of one address, AwsError.
    """
    with telling("sts", region):
        identity = client("sts", region).get_caller_identity()
    where = Where(region, str(identity["Account"]), _partition(str(identity["Arn"])), stack_key)
    wanted = resources(stack)
    known = {**_data(stack, where), **in_state(state)}
    search = _Search(where, wanted, known, since, say, time.monotonic() + pending_s)
    with telling("AWS", region, doing="looking for what the last deploy made"):
        search.run()
        surplus = _surplus(where, wanted, state, search.found)
    objects = [
        Object(address, one.import_id)
        for address, one in search.found.items()
        if address.partition(".")[0] not in HARMLESS
    ]
    return Result(tuple(objects), (*search.strangers, *surplus))


def _partition(arn: str) -> str:
    return arn.split(":")[1] if arn.count(":") > 1 else "aws"


def resources(stack: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Arguments by address of the AWS resources of a synthesized stack."""
    found: dict[str, Mapping[str, Any]] = {}
    for kind, named in (stack.get("resource") or {}).items():
        if kind.startswith("aws_"):
            for name, arguments in named.items():
                found[f"{kind}.{name}"] = arguments
    return found


def in_state(state: Mapping[str, Any] | None) -> dict[str, Mapping[str, Any]]:
    """Attributes by address of everything that a state knows."""
    found: dict[str, Mapping[str, Any]] = {}
    for one in (state or {}).get("resources") or []:
        prefix = "data." if one.get("mode") == "data" else ""
        for instance in one.get("instances") or []:
            found[f"{prefix}{one['type']}.{one['name']}"] = instance.get("attributes") or {}
    return found


def _data(stack: Mapping[str, Any], where: Where) -> dict[str, Mapping[str, Any]]:
    """Data sources whose answers we know without asking."""
    answers = {
        "aws_caller_identity": {"account_id": where.account, "id": where.account},
        "aws_partition": {
            "partition": where.partition, "id": where.partition, "dns_suffix": "amazonaws.com",
        },
        "aws_region": {"name": where.region, "region": where.region, "id": where.region},
    }  # fmt: skip
    found: dict[str, Mapping[str, Any]] = {}
    for kind, named in (stack.get("data") or {}).items():
        for name in named:
            if kind in answers:
                found[f"data.{kind}.{name}"] = answers[kind]
    return found


def _surplus(
    where: Where,
    wanted: Mapping[str, Any],
    state: Mapping[str, Any] | None,
    found: Mapping[str, Found],
) -> list[str]:
    """Objects of the stack that neither the state nor the search has: a request that was sent
    twice makes two of what has no name."""
    ids = {str(values.get("id")) for values in in_state(state).values()}
    ids |= {one.import_id for one in found.values()}
    lines = []
    for kind in sorted({address.partition(".")[0] for address in wanted} & COUNTED):
        for one in all_of_stack(where, kind):
            if one.import_id not in ids:
                address = (one.tags or {}).get(ADDRESS_TAG, kind)
                lines.append(
                    f"{kind} {one.import_id} bears the tags of {address}, which the state knows "
                    "as another; it is left alone: look at it, and remove it by hand"
                )
    return lines
