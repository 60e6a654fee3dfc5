"""A Kubernetes version that EKS no longer offers is refused; one that soon ends is a warning."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from infra.aws.checks import kubernetes
from infra.aws.checks.kubernetes import Version, judge
from tests.unit.aws.needs import need, scaled
from tests.unit.aws.scripted import scripted

NOW = datetime(2026, 12, 4, tzinfo=UTC)
VERSIONS = [
    Version("1.9", "STANDARD_SUPPORT", datetime(2020, 1, 1, tzinfo=UTC)),
    Version("1.33", "EXTENDED_SUPPORT", datetime(2026, 7, 29, tzinfo=UTC)),
    Version("1.34", "STANDARD_SUPPORT", datetime(2027, 1, 2, tzinfo=UTC)),
    Version("1.35", "STANDARD_SUPPORT", datetime(2027, 3, 27, tzinfo=UTC)),
    Version("1.30", "UNSUPPORTED", None),
]


@pytest.mark.parametrize(
    ("version", "verdict", "words"),
    [
        ("1.35", "ok", "until 2027-03-27"),
        ("1.34", "warn", "only until 2027-01-02"),
        ("1.33", "warn", "extended support"),
        ("1.30", "no", "it offers 1.9, 1.34, 1.35"),
        ("1.99", "no", "EKS does not offer 1.99"),
    ],
)
def test_versions(version: str, verdict: str, words: str) -> None:
    row = judge(version, VERSIONS, now=NOW)
    assert (row.verdict, words in row.found) == (verdict, True)


def test_answers_of_aws_are_read() -> None:
    script = {
        "eks.describe_cluster_versions": {
            "clusterVersions": [
                {
                    "clusterVersion": "1.35",
                    "versionStatus": "STANDARD_SUPPORT",
                    "status": "standard-support",
                    "endOfStandardSupportDate": datetime(2099, 3, 27, tzinfo=UTC),
                }
            ]
        }
    }
    [row] = kubernetes.check(scripted(script), scaled())
    assert row.verdict == "ok"


def test_a_tier_without_a_cluster_has_no_row() -> None:
    assert kubernetes.check(scripted({}), need()) == []
