"""`cdktf deploy` of the AWS tiers: the real provider against a server that speaks AWS's API.

The server is moto with an extension (tests/rigs/aws); what it cannot show, docs/deploy-on-aws.md
says. Machines only (SPECRACK_LAYERS=hosts): nothing here can be configured.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.errors import SpecrackError
from infra.tools import mirror
from tests.e2e.conftest import ROOT, Project
from tests.rigs.aws.census import census
from tests.rigs.aws.rig import AwsRig
from tests.unit.stacks.aws.conftest import BASE, SCALED

pytestmark = pytest.mark.e2e

#: Its destroy waits ten minutes inside the provider.
NO_LUSTRE = {"weights": {"bucket": "acme-models", "prefix": "llama/"}}


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip where the AWS provider can be had neither from a mirror nor from the registry."""
    cache = tmp_path_factory.mktemp("providers")
    try:
        mirror.choose(dict(os.environ), cache, ("hashicorp/aws",))
    except SpecrackError as error:
        pytest.skip(f"no AWS provider for Terraform: {error}")


@pytest.fixture(scope="module")
def rig(provider: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsRig]:
    started = AwsRig.start(tmp_path_factory.mktemp("aws"))
    yield started
    started.stop()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    root = tmp_path_factory.mktemp("aws-project")
    for name in ("node_modules", "playbooks", "models"):
        (root / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "cdktf.json", root / "cdktf.json")
    (root / "deployments").mkdir()
    for base in (BASE, SCALED):
        content = base | {"aws": base["aws"] | NO_LUSTRE}
        path = root / "deployments" / f"{base['name']}.yaml"
        path.write_text(json.dumps(content))
    return Project(root)


def env_of(rig: AwsRig) -> dict[str, str]:
    kept = {key: os.environ[key] for key in ("TF_CLI_CONFIG_FILE",) if key in os.environ}
    return kept | rig.env | {"SPECRACK_LAYERS": "hosts"}


@pytest.mark.parametrize("name", ["chat", "answers"])
def test_a_tier_is_made_does_not_drift_and_goes_without_a_trace(
    name: str, rig: AwsRig, project: Project
) -> None:
    env = env_of(rig)
    rig.reset()
    before = census(rig)
    locked = project.run("specrack", "lock", name, env=env)
    assert locked.returncode == 0, locked.stderr
    made = project.run("cdktf", "deploy", name, "--auto-approve", env=env)
    assert made.returncode == 0, made.stdout[-4000:] + made.stderr[-4000:]
    assert f"{name}: the machines are there; nothing was configured" in made.stdout
    again = project.run("cdktf", "deploy", name, "--auto-approve", env=env)
    assert again.returncode == 0, again.stdout[-4000:] + again.stderr[-4000:]
    said = re.sub(r"\x1b\[[0-9;]*m", "", again.stdout)
    assert "No changes" in said or "0 added, 0 changed, 0 destroyed" in said, said[-3000:]
    assert_nothing_secret(project.root, name)
    gone = project.run("cdktf", "destroy", name, "--auto-approve", env=env)
    assert gone.returncode == 0, gone.stdout[-4000:] + gone.stderr[-4000:]
    assert census(rig) == before


def assert_nothing_secret(root: Path, name: str) -> None:
    """Neither state nor synthesized stack holds a credential."""
    found = [
        *root.glob(f".specrack/{name}-*/terraform.tfstate*"),
        *root.glob("cdktf.out/**/*.json"),
    ]
    assert found
    for path in found:
        text = path.read_text(errors="replace")
        assert "AWS_SECRET_ACCESS_KEY" not in text
        assert '"secret_key"' not in text
