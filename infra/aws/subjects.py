"""The rows that only the account can decide, by name and in the order of the table."""

from __future__ import annotations

from infra.aws.need import Need

IDENTITY, REGION, HELPERS = "identity", "region", "quota (system)"
ZONE, QUOTA, RESERVATION, UNUSED = "zone", "quota", "reservation", "unused reservations"
IMAGE, KUBERNETES, NETWORK, PERMISSIONS = "image", "kubernetes", "network", "permissions"
WEIGHTS, SECRET, PRICE = "weights", "hub secret", "price"

#: Way of buying -> why no quota is looked at.
RESERVED = {
    "reservation": "reserved machines were counted when they were reserved",
    "capacity_block": "a block was bought as a number of machines",
}


def subjects(need: Need) -> tuple[str, ...]:
    """The checks that mean something for ``need``, after the identity."""
    found = [ZONE, QUOTA, RESERVATION, IMAGE]
    if need.orchestration == "eks":
        found.append(KUBERNETES)
    found += [NETWORK, PERMISSIONS]
    if need.bucket is not None:
        found.append(WEIGHTS)
    if need.hub_secret is not None:
        found.append(SECRET)
    return (*found, PRICE)
