"""The base of stacks on AWS: provider, backend, tags, and the checks of the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jsii
from constructs import Construct

from infra.spec.model import Deployment
from infra.state_backend import Backend
from stacks.aws.core import PROVIDER, SOURCE, DataSource, Resource, StackError
from stacks.aws.references import dangling
from stacks.aws.rules import Part, broken
from stacks.engine import cdk

#: The services that stacks talk to, as the provider names them.
SERVICES = (
    "autoscaling", "budgets", "cloudwatch", "ec2", "eks", "fsx", "iam", "kms", "logs", "s3",
    "scheduler", "secretsmanager", "sns", "ssm", "sts",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settings:
    """Where a stack's state is, and how AWS is reached.

    ``state_path``: the local state file. ``endpoint``: a server to use in place of AWS (tests, or
    a private endpoint). ``adopted``: address -> import id of objects that an interrupted deploy
    left without a state.
    """

    backend: Backend
    state_path: str
    endpoint: str | None
    adopted: Mapping[str, str]


class Provider(cdk.TerraformProvider):
    """The provider block."""

    def __init__(self, scope: Construct, configuration: Mapping[str, Any]) -> None:
        super().__init__(
            scope,
            "aws",
            terraform_resource_type="aws",
            terraform_provider_source=SOURCE,
            terraform_generator_metadata=PROVIDER,
        )
        self._configuration = dict(configuration)

    @jsii.member(jsii_name="synthesizeAttributes")
    def _synthesize_attributes(self) -> Mapping[str, Any]:
        return self._configuration


class AwsStack(cdk.TerraformStack):
    """One deployment on AWS. Subclasses add resources and call ``finish``."""

    def __init__(
        self, scope: Construct, deployment: Deployment, *, region: str, settings: Settings
    ) -> None:
        super().__init__(scope, deployment.name)
        self.deployment = deployment
        self.key = deployment.stack_key
        self.region = region
        self.protected = deployment.env == "prod"
        #: Everything that was added, for the checks of the whole.
        self.parts: list[Resource | DataSource] = []
        self._settings = settings
        self._put_state()
        Provider(self, self._provider())

    def common_tags(self) -> dict[str, str]:
        """On everything: who it belongs to, and the user's own tags for cost allocation."""
        return {
            **self.deployment.tags,
            "specrack:deployment": self.deployment.name,
            "specrack:stack": self.key,
            "specrack:env": self.deployment.env,
        }

    def named(self, what: str) -> str:
        """A name that is unique in the account: ``chat-prototype-server``."""
        return f"{self.key}-{what}"

    def finish(self) -> None:
        """Judge the stack as a whole. Raises StackError with every fault."""
        parts = [Part(part.KIND, part.TYPE, part.local_name, part.arguments) for part in self.parts]
        faults = [*dangling(parts), *broken(parts)]
        if faults:
            raise StackError([f"{self.deployment.name}: {fault}" for fault in faults])
        ours = {part.address for part in self.parts}
        imports = [
            {"to": address, "id": import_id}
            for address, import_id in sorted(self._settings.adopted.items())
            if address in ours
        ]
        if imports:
            self.add_override("import", imports)

    def _put_state(self) -> None:
        backend, endpoint = self._settings.backend, self._settings.endpoint
        if backend.kind == "local":
            cdk.LocalBackend(self, path=self._settings.state_path)
            return
        cdk.S3Backend(
            self,
            bucket=backend.bucket or "",
            key=backend.key_of(self.key),
            region=backend.region,
            encrypt=True,
            kms_key_id=backend.kms_key,
        )
        more: dict[str, Any] = {"use_lockfile": True}
        if endpoint is not None:
            more |= {
                "endpoints": {"s3": endpoint, "sts": endpoint, "iam": endpoint},
                "use_path_style": True,
                "skip_credentials_validation": True,
                "skip_metadata_api_check": True,
                "skip_requesting_account_id": True,
                "skip_region_validation": True,
            }
        # The construct is older than these settings.
        for name, value in more.items():
            self.add_override(f"terraform.backend.s3.{name}", value)

    def _provider(self) -> dict[str, Any]:
        endpoint = self._settings.endpoint
        configuration: dict[str, Any] = {
            "region": self.region,
            "default_tags": [{"tags": self.common_tags()}],
            # The provider's own 25 is half an hour of silence.
            "max_retries": 10,
        }
        if endpoint is not None:
            configuration |= {
                "endpoints": [dict.fromkeys(SERVICES, endpoint)],
                "s3_use_path_style": True,
                "skip_credentials_validation": True,
                "skip_metadata_api_check": "true",
                "max_retries": 2,
            }
        return configuration


def statements(*rules: Mapping[str, Any]) -> dict[str, Any]:
    """An IAM policy document."""
    return {"Version": "2012-10-17", "Statement": [dict(rule) for rule in rules]}


def allow(
    actions: Sequence[str],
    resources: Sequence[str],
    condition: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A statement that allows ``actions`` on ``resources``."""
    rule: dict[str, Any] = {
        "Effect": "Allow", "Action": list(actions), "Resource": list(resources),
    }  # fmt: skip
    return rule | ({"Condition": dict(condition)} if condition else {})


def trusted(*services: str, condition: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A trust policy: ``services`` of AWS may take the role."""
    rule: dict[str, Any] = {
        "Effect": "Allow",
        "Principal": {"Service": list(services)},
        "Action": ["sts:AssumeRole"],
    }
    return statements(rule | ({"Condition": dict(condition)} if condition else {}))
