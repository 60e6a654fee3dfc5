"""docs/preflight.md says what the code does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from infra.aws import offline, subjects
from infra.aws.actions import PREFLIGHT
from infra.aws.checks.running import FAMILIES
from infra.aws.preflight import DEADLINE_S
from infra.aws.session import ATTEMPTS, READ_S
from infra.aws.tunnel import PLUGIN_SINCE
from infra.catalog import catalog

TEXT = (Path(__file__).parents[3] / "docs" / "preflight.md").read_text(encoding="utf-8")


def test_the_policy_is_what_preflight_asks() -> None:
    [block] = re.findall(r"```json\n(.*?)```", TEXT, flags=re.DOTALL)
    [statement] = json.loads(block)["Statement"]
    assert statement["Action"] == list(PREFLIGHT)
    assert statement["Effect"] == "Allow"


@pytest.mark.parametrize(
    "name",
    [
        offline.MACHINES, offline.INTERFACES, offline.DRAWS, offline.PURCHASE,
        subjects.IDENTITY, subjects.REGION, subjects.ZONE, subjects.QUOTA, subjects.HELPERS,
        subjects.RESERVATION, subjects.UNUSED, subjects.IMAGE, subjects.KUBERNETES,
        subjects.NETWORK, subjects.PERMISSIONS, subjects.WEIGHTS, subjects.SECRET, subjects.PRICE,
    ],
)  # fmt: skip
def test_every_row_is_explained(name: str) -> None:
    assert f"| {name} |" in TEXT


def test_every_quota_that_is_counted_is_listed() -> None:
    codes = {
        code
        for row in catalog().instances.values()
        if row.quota
        for code in (row.quota.on_demand, row.quota.spot)
    }
    for code in codes | set(FAMILIES):
        assert code in TEXT


def test_figures_are_those_of_the_code() -> None:
    assert f"at most {DEADLINE_S:.0f} seconds" in TEXT
    assert f"after {READ_S:.0f} seconds" in TEXT
    assert ATTEMPTS == 3
    assert "tried three times" in TEXT.replace("\n", " ")
    assert ".".join(str(part) for part in PLUGIN_SINCE) in TEXT
