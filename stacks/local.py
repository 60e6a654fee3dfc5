"""The ``local`` tier: this machine. Same graph as the tiers that cost money."""

from __future__ import annotations

from constructs import Construct

from infra.inventory import Host, Inventory
from infra.paths import StatePaths
from stacks.constructs import layers
from stacks.constructs.step import Step, command, on_destroy
from stacks.engine import cdk

HOST = Host(name="localhost", connection="local")


class LocalStack(cdk.TerraformStack):
    """One deployment on this machine, its state below ``.specrack/<deployment>-<tier>/``."""

    def __init__(self, scope: Construct, inventory: Inventory, *, paths: StatePaths) -> None:
        super().__init__(scope, inventory.deployment)
        root = str(paths.root)
        cdk.LocalBackend(self, path=str(paths.terraform_state))
        hosts = Step(
            self,
            "hosts",
            record={"name": HOST.name, "stack": inventory.stack_key},
            run=[
                on_destroy(
                    command("release", inventory.stack_key),
                    root=root,
                    environment={},
                )
            ],
        )
        configure = layers.configure(self, inventory, root=root, hosts=hosts)
        layers.smoke(self, inventory, root=root, after=configure)
        cdk.TerraformOutput(
            self,
            "state_folder",
            value=str(paths.base),
            description="Logs, reports and the address of the endpoint are below this folder.",
        )
