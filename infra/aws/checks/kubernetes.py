"""The Kubernetes version: does EKS still support it, and for how long?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from infra.aws.ask import Aws
from infra.aws.need import Need
from infra.aws.rows import Row, listed, no, ok, warn
from infra.aws.subjects import KUBERNETES as SUBJECT

SOON = timedelta(days=60)


@dataclass(frozen=True, slots=True)
class Version:
    """``support``: STANDARD_SUPPORT, EXTENDED_SUPPORT or UNSUPPORTED, as EKS says."""

    version: str
    support: str
    standard_until: datetime | None


def check(aws: Aws, need: Need) -> list[Row]:
    """Only for tiers on EKS. Raises AwsError."""
    if need.orchestration != "eks" or need.kubernetes is None:
        return []
    entries = aws.pages("eks", "describe_cluster_versions", "clusterVersions")
    versions = [
        Version(
            version=str(entry["clusterVersion"]),
            support=str(entry.get("versionStatus") or entry.get("status") or "unknown")
            .upper()
            .replace("-", "_"),
            standard_until=entry.get("endOfStandardSupportDate"),
        )
        for entry in entries
    ]
    return [judge(need.kubernetes, versions, now=datetime.now(UTC))]


def judge(wanted: str, versions: list[Version], *, now: datetime) -> Row:
    """``wanted`` among what EKS offers."""
    found = next((entry for entry in versions if entry.version == wanted), None)
    standard = [entry.version for entry in versions if entry.support == "STANDARD_SUPPORT"]
    newest = sorted(standard, key=_order)
    if found is None or found.support == "UNSUPPORTED":
        return no(
            SUBJECT,
            f"EKS does not offer {wanted}; it offers {listed(newest)}",
            "choose one of these for the tier",
        )
    until = found.standard_until
    shown = f" until {until:%Y-%m-%d}" if until else ""
    if found.support == "EXTENDED_SUPPORT":
        return warn(
            SUBJECT,
            f"{wanted} is in extended support, which EKS charges more for",
            f"move to {newest[-1]}" if newest else "move to a newer version",
        )
    if until is not None and until - now < SOON:
        return warn(SUBJECT, f"{wanted} is in standard support only{shown}", "plan an upgrade")
    return ok(SUBJECT, f"{wanted} is in standard support{shown}")


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
