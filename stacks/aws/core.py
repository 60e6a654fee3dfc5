"""The base classes of AWS resources in stacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import jsii
from constructs import Construct

from infra.errors import InputError
from stacks.aws.arguments import faults
from stacks.aws.schema import DATA, RESOURCE, Shape, shape_of
from stacks.aws.values import Block, Ref, UnknownAttributeError, no_such, plain
from stacks.engine import cdk

__all__ = ["PROVIDER", "Block", "DataSource", "Ref", "Resource", "StackError"]

#: What our code is written for; 5.100 is what it is run on.
PROVIDER = cdk.TerraformProviderGeneratorMetadata(
    provider_name="aws", provider_version_constraint=">= 5.100, < 7"
)
SOURCE = "hashicorp/aws"
#: On everything that takes tags: the resource's address in its stack.
ADDRESS_TAG = "specrack:address"


class StackError(InputError):
    """A stack that Terraform, or AWS, would refuse. One line a fault."""

    code = "stack"

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = tuple(faults)

    @property
    def lines(self) -> tuple[str, ...]:
        return self.faults


class _Typed:
    """What resources and data sources share: arguments checked, outputs as attributes."""

    KIND: ClassVar[str]
    TYPE: ClassVar[str]

    _given: dict[str, Any]
    _name: str
    #: The stack: told of each part, so that it can be judged as a whole.
    _owner: Any

    @classmethod
    def _shape(cls) -> Shape:
        return shape_of(cls.KIND, cls.TYPE)

    def _take(self, scope: Construct, name: str, given: dict[str, Any]) -> None:
        self._given = {key: value for key, value in given.items() if value is not None}
        self._name = name
        self._owner = _owner_of(scope)
        found = list(faults(self._shape(), self._given))
        if found:
            stack = cdk.TerraformStack.of(scope).node.id
            raise StackError([f"{stack}: {self.address}: {fault}" for fault in found])

    def _full_name(self) -> str:
        key = getattr(self._owner, "key", None)
        return f"{key}-{self._name}" if key else self._name

    @property
    def local_name(self) -> str:
        """The name within its type."""
        return self._name

    @property
    def address(self) -> str:
        """As Terraform calls it: ``aws_vpc.network``, ``data.aws_partition.here``."""
        prefix = "data." if self.KIND == DATA else ""
        return f"{prefix}{self.TYPE}.{self._name}"

    @property
    def arguments(self) -> dict[str, Any]:
        """What was given, as dicts and lists."""
        return {key: plain(value) for key, value in self._given.items()}

    def __getattr__(self, name: str) -> Ref:
        if name.startswith("_"):
            raise AttributeError(name)
        type_ = self._shape().output(name)
        if type_ is None:
            raise no_such(self.address, name, self._shape().names)
        return Ref(f"{self.address}.{name}", type_)


class Resource(_Typed, cdk.TerraformResource):
    """A resource. Subclasses are made by ``stacks.aws.resources``."""

    KIND = RESOURCE

    def __init__(
        self,
        scope: Construct,
        id_: str,
        /,
        *,
        depends_on: Sequence[cdk.ITerraformDependable] | None = None,
        lifecycle: Mapping[str, Any] | None = None,
        **given: Any,
    ) -> None:
        self._take(scope, id_, given)
        if "tags" in self._shape().arguments:
            # Found by these again when a deploy was cut off before its state was written.
            name = {} if "Name" in (given.get("tags") or {}) else {"Name": self._full_name()}
            own = {ADDRESS_TAG: self.address}
            self._given["tags"] = {**name, **(given.get("tags") or {}), **own}
        cdk.TerraformResource.__init__(
            self,
            scope,
            id_,
            terraform_resource_type=self.TYPE,
            terraform_generator_metadata=PROVIDER,
            depends_on=list(depends_on) if depends_on else None,
            lifecycle=cdk.TerraformResourceLifecycle(**lifecycle) if lifecycle else None,
        )
        self._owner.parts.append(self)

    @jsii.member(jsii_name="synthesizeAttributes")
    def _synthesize_attributes(self) -> Mapping[str, Any]:
        return self.arguments


class DataSource(_Typed, cdk.TerraformDataSource):
    """A data source. Subclasses are made by ``stacks.aws.resources``."""

    KIND = DATA

    def __init__(
        self,
        scope: Construct,
        id_: str,
        /,
        *,
        depends_on: Sequence[cdk.ITerraformDependable] | None = None,
        **given: Any,
    ) -> None:
        self._take(scope, id_, given)
        cdk.TerraformDataSource.__init__(
            self,
            scope,
            id_,
            terraform_resource_type=self.TYPE,
            terraform_generator_metadata=PROVIDER,
            depends_on=list(depends_on) if depends_on else None,
        )
        self._owner.parts.append(self)

    @jsii.member(jsii_name="synthesizeAttributes")
    def _synthesize_attributes(self) -> Mapping[str, Any]:
        return self.arguments


def _owner_of(scope: Construct) -> Any:
    """The stack that ``scope`` is, or is in."""
    # Asked of jsii only where it must be: each question to it is half a millisecond.
    owner = scope if hasattr(scope, "parts") else cdk.TerraformStack.of(scope)
    if not hasattr(owner, "parts"):
        raise UnknownAttributeError(
            "a resource of AWS stands in a stack that is no AwsStack", do="derive from AwsStack"
        )
    return owner
