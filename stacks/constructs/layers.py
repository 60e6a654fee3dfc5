"""The deploy graph, the same for every tier: hosts -> configure -> smoke.

A stack module makes the hosts; these two layers follow it. See docs/architecture.md.
"""

from __future__ import annotations

import json

from constructs import Construct

from infra.inventory import Inventory
from stacks.constructs.step import Step, command, on_create
from stacks.engine import cdk

INVENTORY = "SPECRACK_INVENTORY"


def configure(
    scope: Construct, inventory: Inventory, *, root: str, hosts: cdk.ITerraformDependable
) -> Step:
    """Bring the hosts to the launch plan. Runs again exactly when the trigger changed, which is a
    hash over hosts, launch plan and playbooks."""
    return Step(
        scope,
        "configure",
        after=[hosts],
        triggers={"content": inventory.trigger},
        run=[
            on_create(
                command("configure", inventory.deployment),
                root=root,
                environment={INVENTORY: json.dumps(inventory.to_json(), sort_keys=True)},
            )
        ],
    )


def smoke(scope: Construct, inventory: Inventory, *, root: str, after: Step) -> Step:
    """Check the SLA. Runs on every deploy; a failed verdict fails the apply and leaves the hosts
    up for diagnosis."""
    return Step(
        scope,
        "smoke",
        after=[after],
        triggers={"at": cdk.Fn.timestamp()},
        run=[
            on_create(command("smoke", inventory.deployment, "--step"), root=root, environment={})
        ],
    )
