"""What an AWS stack costs to synthesize: our classes, beside the prebuilt AWS bindings.

``make bench-synth``. The same resources three ways, in one run: the AWS tiers with our classes; a
stack of as many resources with the prebuilt bindings of cdktf, and of cdktn. Then how ours grows
with the number of resources. The bindings (about 500 MB each) are installed once, below
``.specrack/cache/bindings-*``; ``--ours`` leaves them out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from infra.tools import node

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".specrack" / "cache"
BINDINGS = {
    "cdktf": ("cdktf==0.21.0", "cdktf-cdktf-provider-aws==21.22.1", "cdktf_cdktf_provider_aws"),
    "cdktn": ("cdktn==0.24.0", "cdktn-provider-aws==25.8.1", "cdktn_provider_aws"),
}

PREBUILT = """
import {engine} as cdk
from {package}.provider import AwsProvider
from {package}.vpc import Vpc
from {package}.subnet import Subnet
from {package}.security_group import SecurityGroup
from {package}.iam_role import IamRole
from {package}.instance import Instance
from {package}.launch_template import LaunchTemplate
import sys
app = cdk.App(outdir=sys.argv[1], skip_validation=True)
stack = cdk.TerraformStack(app, "bench")
AwsProvider(stack, "aws", region="us-east-1")
vpc = Vpc(stack, "network", cidr_block="10.0.0.0/16")
for n in range({count}):
    [
        lambda n: Subnet(stack, f"s{{n}}", vpc_id=vpc.id, cidr_block=f"10.0.{{n % 250}}.0/24"),
        lambda n: SecurityGroup(stack, f"g{{n}}", vpc_id=vpc.id, description="x"),
        lambda n: IamRole(stack, f"r{{n}}", assume_role_policy="{{}}"),
        lambda n: Instance(stack, f"i{{n}}", ami="ami-1", instance_type="g5.12xlarge"),
        lambda n: LaunchTemplate(stack, f"t{{n}}", instance_type="p4d.24xlarge"),
    ][n % 5](n)
app.synth()
"""

OURS = """
import sys
from stacks.engine import cdk
from stacks.aws import resources as aws
app = cdk.App(outdir=sys.argv[1], skip_validation=True)
class Stack(cdk.TerraformStack):
    def __init__(self, scope, name):
        super().__init__(scope, name)
        self.parts = []
stack = Stack(app, "bench")
vpc = aws.Vpc(stack, "network", cidr_block="10.0.0.0/16")
for n in range({count}):
    [
        lambda n: aws.Subnet(stack, f"s{{n}}", vpc_id=vpc.id, cidr_block=f"10.0.{{n % 250}}.0/24"),
        lambda n: aws.SecurityGroup(stack, f"g{{n}}", vpc_id=vpc.id, description="x"),
        lambda n: aws.IamRole(stack, f"r{{n}}", assume_role_policy="{{}}"),
        lambda n: aws.Instance(stack, f"i{{n}}", ami="ami-1", instance_type="g5.12xlarge"),
        lambda n: aws.LaunchTemplate(stack, f"t{{n}}", instance_type="p4d.24xlarge"),
    ][n % 5](n)
app.synth()
"""

#: Runs what it is given and tells CPU seconds and the largest process, children's children too.
METER = """
import ctypes, json, os, resource, subprocess, sys, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
start = time.monotonic()
status = subprocess.run(sys.argv[1:]).returncode
wall = time.monotonic() - start
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([status, used.ru_utime + used.ru_stime, wall, used.ru_maxrss * 1024 / 1e6]))
"""


def measure(command: list[str], env: dict[str, str], cwd: Path) -> tuple[float, float, float]:
    """CPU seconds, wall seconds, MB of the largest process; the best of three after a warm-up."""
    found = []
    for _ in range(4):
        with tempfile.TemporaryDirectory() as out:
            done = subprocess.run(
                [sys.executable, "-c", METER, *command, out],
                env=env | {"CDKTF_OUTDIR": out},
                cwd=cwd,
                capture_output=True,
                text=True,
                check=False,
            )
        lines = done.stdout.splitlines()
        status, *figures = json.loads(lines[-1]) if lines else [1]
        if status:
            sys.exit(f"{command}: {done.stderr[-2000:]}")
        found.append(tuple(figures))
    return min(found[1:])


def show(what: str, figures: tuple[float, float, float]) -> None:
    cpu_s, wall_s, largest_mb = figures
    print(f"{what:44} {cpu_s:6.2f} s CPU {wall_s:6.2f} s {largest_mb:6.0f} MB", flush=True)


def binding_python(engine: str) -> Path:
    """The interpreter of an environment with prebuilt bindings; made on first use."""
    core, bindings, _ = BINDINGS[engine]
    folder = CACHE / f"bindings-{engine}"
    python = folder / "bin" / "python"
    if not (folder / ".ready").exists():
        print(f"installing {bindings} (about 500 MB, once)", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", core, bindings], check=True)
        (folder / ".ready").touch()
    return python


def project(folder: Path) -> dict[str, str]:
    """A project with the AWS deployments of the tests; the environment to synthesize it in."""
    from infra import lock
    from tests.unit.stacks.aws.conftest import BASE, IMAGE, RELEASE, SCALED

    (folder / "deployments").mkdir()
    for base in (BASE, SCALED):
        text = json.dumps(base)
        (folder / "deployments" / f"{base['name']}.yaml").write_text(text)
        pins = lock.AwsLock(region="us-east-1", image=IMAGE, kubernetes=RELEASE)
        lock.write(folder, base["name"], lock.Lock(aws=pins))
    (folder / "cdktf.json").symlink_to(ROOT / "cdktf.json")
    (folder / "playbooks").symlink_to(ROOT / "playbooks")
    return {"SPECRACK_ROOT": str(folder), "SPECRACK_LAYERS": "hosts"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ours", action="store_true", help="leave the prebuilt bindings out")
    options = parser.parse_args()
    env = node.quiet(dict(os.environ), node.find())
    env["PYTHONPATH"] = str(ROOT)
    print(f"{os.cpu_count()} cores; best of three; the largest process of all\n")
    with tempfile.TemporaryDirectory() as folder:
        more = project(Path(folder))
        count = 0
        for name in ("chat", "answers"):
            figures = measure(
                [
                    sys.executable,
                    "-c",
                    "import sys; from stacks.__main__ import main; sys.exit(main())",
                ],
                env | more | {"SPECRACK_DEPLOYMENTS": name},
                Path(folder),
            )
            show(f"python -m stacks, {name}", figures)
        count = 35
    for count in (0, 35, 100, 200, 400):
        command = [sys.executable, "-c", OURS.format(count=count)]
        show(f"ours, {count + 1} resources", measure(command, env, ROOT))
    if options.ours:
        return
    for engine, (_, _, package) in BINDINGS.items():
        program = PREBUILT.format(engine=engine, package=package, count=35)
        python = binding_python(engine)
        show(
            f"prebuilt bindings of {engine}, 36 resources",
            measure([str(python), "-c", program], env, ROOT),
        )


if __name__ == "__main__":
    main()
