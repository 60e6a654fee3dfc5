"""Ray Serve's configuration: how many replicas, how many requests each, when more."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from infra.fleet import ResolvedFleet
from infra.kubernetes.files import APP_PACKAGE, PLAN_FOLDER, PLAN_NAME
from infra.kubernetes.inputs import ROOT
from infra.kubernetes.names import SERVE_PORT
from infra.serving.plan import LaunchPlan
from infra.spec.model import Deployment

#: Below what a node takes: new nodes need minutes, so they are asked for before the old are full.
TARGET_SHARE = 0.8
UPSCALE_AFTER_S = 30.0
#: Loading a large model again takes minutes, so a node is not given up at the first lull.
DOWNSCALE_AFTER_S = 600.0
#: A request that is being answered is answered to the end when a replica goes.
DRAIN_S = 120.0
#: Ray's own resource for machines whose accelerators it does not count as GPUs.
NODE_RESOURCE = "specrack_node"


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast Serve reacts, in seconds."""

    upscale_after_s: float = UPSCALE_AFTER_S
    downscale_after_s: float = DOWNSCALE_AFTER_S
    health_period_s: float = 5.0
    drain_s: float = DRAIN_S
    look_back_s: float = 30.0
    measure_every_s: float = 5.0


def requests_per_node(deployment: Deployment, fleet: ResolvedFleet) -> int:
    """Requests that one node works on at once, at most: its share of the sessions when all nodes
    are there. More wait, and make the fleet grow."""
    return math.ceil(deployment.load.sessions / fleet.nodes_max)


def serve_config(
    deployment: Deployment,
    fleet: ResolvedFleet,
    plan: LaunchPlan,
    *,
    pace: Pace | None = None,
    args: dict[str, str] | None = None,
) -> dict[str, Any]:
    """The configuration that the operator hands to Serve, with the application's arguments."""
    pace = pace or Pace()
    limit = requests_per_node(deployment, fleet)
    engine = {
        "name": "Engine",
        "max_ongoing_requests": limit,
        # All the sessions that the SLA is promised for may wait; more are turned away (503).
        "max_queued_requests": deployment.load.sessions,
        "max_replicas_per_node": 1,
        "ray_actor_options": {"num_cpus": 1, **_accelerators(fleet)},
        "health_check_period_s": pace.health_period_s,
        "health_check_timeout_s": 30.0,
        "graceful_shutdown_wait_loop_s": 2.0,
        # Beside the requests: the engine's own stop.
        "graceful_shutdown_timeout_s": pace.drain_s + _stop_s(plan),
        "autoscaling_config": {
            "min_replicas": fleet.nodes_min,
            "max_replicas": fleet.nodes_max,
            "initial_replicas": fleet.nodes_min,
            "target_ongoing_requests": max(1, math.floor(limit * TARGET_SHARE)),
            "upscale_delay_s": pace.upscale_after_s,
            "downscale_delay_s": pace.downscale_after_s,
            "metrics_interval_s": pace.measure_every_s,
            "look_back_period_s": pace.look_back_s,
        },
    }
    return {
        "proxy_location": "EveryNode",
        "http_options": {"host": "0.0.0.0", "port": SERVE_PORT},  # noqa: S104 - in its own pod
        "applications": [
            {
                "name": deployment.name,
                "route_prefix": "/",
                "import_path": f"{APP_PACKAGE}.serve:build",
                "args": {
                    "plan": f"{PLAN_FOLDER}/{PLAN_NAME}",
                    "role": "speculative",
                    "folder": f"{ROOT}/run",
                    **(args or {}),
                },
                "deployments": [engine],
            }
        ],
    }


def _accelerators(fleet: ResolvedFleet) -> dict[str, Any]:
    if fleet.accelerator_vendor == "nvidia":
        return {"num_gpus": fleet.instance.accelerators}
    return {"resources": {NODE_RESOURCE: 1}}


def _stop_s(plan: LaunchPlan) -> float:
    return max(service.stop_timeout_s for service in plan.services)
