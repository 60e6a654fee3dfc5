"""What can be said without an account is said, and what was not looked at is named."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from infra.aws.need import Need, Pinned
from infra.aws.offline import report
from infra.aws.rows import Report, Row
from infra.commands.preflight import render, report_for, table
from infra.commands.show import plain
from tests.unit.aws.needs import deployment, in_vpc, need, reserved, scaled


def rows(wanted: Need) -> dict[str, Row]:
    return {row.subject: row for row in report(wanted).rows}


def test_quota_is_reckoned_in_vcpus() -> None:
    made = rows(scaled(nodes={"min": 2, "max": 4}))
    assert made["vCPUs"].found == (
        "192 to 384 of quota L-417A185B (96 a p4d.24xlarge); 12 of L-1216C47A for 3 m6i.xlarge"
    )
    assert "were counted" in rows(reserved())["vCPUs"].found
    assert rows(need())["vCPUs"].found == "48 of quota L-DB2E81BA (48 a g5.12xlarge)"


def test_interfaces_and_their_addresses_are_shown() -> None:
    found = rows(scaled())["interfaces"].found
    assert found == "EFA: 4 of 4 network cards, 4 addresses a machine, no public one"
    p5 = rows(scaled(instance="p5.48xlarge"))["interfaces"].found
    assert p5 == "EFA: 32 of 32 network cards, 1 addresses a machine, no public one"
    assert "interfaces" not in rows(need())


def test_a_purchase_that_the_machine_is_not_sold_by_is_a_warning() -> None:
    p5 = scaled(instance="p5.48xlarge")
    assert "purchase" not in rows(p5)
    odd = replace(p5, instance=p5.instance.model_copy(update={"usage_classes": ("spot",)}))
    assert rows(odd)["purchase"].verdict == "warn"


def test_a_node_release_of_another_version_is_refused() -> None:
    pinned = Pinned(release_version="1.34.1-20261120")
    made = report(replace(scaled(), pinned=pinned))
    assert made.exit_status == 2
    assert "pins 1.34.1-20261120, but the cluster is 1.35" in made.refused[0].found


def test_the_price_is_the_catalogues() -> None:
    row = rows(need())["price"]
    assert "catalogue of 2026-07-20" in row.found
    assert "AWS was not asked" in row.found


def test_what_was_not_looked_at_is_named() -> None:
    made = report(scaled())
    names = [row.subject for row in made.rows if row.verdict == "skipped"]
    assert names == [
        "identity", "zone", "quota", "reservation", "image", "kubernetes", "network",
        "permissions",
    ]  # fmt: skip
    assert (made.online, made.exit_status) == (False, 0)


def test_a_zone_of_another_region_is_refused() -> None:
    assert rows(replace(need(), zone="eu-west-1a"))["machines"].verdict == "no"


def test_a_local_deployment_has_no_preflight() -> None:
    local = deployment(tier="local", site="local", serving={
        "engine": "llamacpp", "speculation": {"method": "draft_model", "draft_tokens": 4},
    })  # fmt: skip
    assert report_for(local, offline=True) is None


def test_offline_needs_no_boto3() -> None:
    code = (
        "import sys; sys.modules['boto3'] = sys.modules['botocore'] = None\n"
        "from tests.unit.aws.needs import deployment\n"
        "from infra.commands.preflight import report_for\n"
        "assert report_for(deployment(), offline=True).exit_status == 0"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


LONG = Row(
    "permissions",
    "no",
    "role/aws-reserved/sso.amazonaws.com/AWSReservedSSO_Deploy_0a may not ec2:RunInstances, "
    "ec2:CreateVpc, iam:PassRole and 3 more",
    "allow them for this identity; docs/preflight.md has the policy",
)


@pytest.mark.parametrize("width", [60, 100])
def test_the_table_fits_its_width_and_loses_nothing(width: int) -> None:
    made = Report("chat", True, (*report(in_vpc(need())).rows, LONG))
    console = Console(width=width, record=True, color_system=None, file=io.StringIO())
    render(made, console)
    text = console.export_text()
    assert all(len(line) <= width for line in text.splitlines())
    words = " ".join(text.split())
    assert "may not ec2:RunInstances" in words
    assert "do: allow them" in words
    assert "preflight: refused (permissions); nothing was started" in words


def test_a_row_says_subject_verdict_finding_and_remedy_in_a_log() -> None:
    text = plain(table(Report("chat", True, (LONG,))))
    lines = text.splitlines()
    assert lines[0].split() == ["preflight", "verdict", "found,", "and", "what", "to", "do"]
    assert lines[1].startswith("permissions  no       role/aws-reserved/")
    assert "do: allow them for this identity; docs/preflight.md has the policy" in lines[-1]
