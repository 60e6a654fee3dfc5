"""Does a deployment fit, and what will it cost? From the catalogue; nothing is started."""

from infra.planner.cost import Cost, FleetCost, NodeRate
from infra.planner.judging import Estimate, compare, estimate
from infra.planner.memory import Fit

__all__ = ["Cost", "Estimate", "Fit", "FleetCost", "NodeRate", "compare", "estimate"]
