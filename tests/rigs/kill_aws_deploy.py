"""Cut a deploy to AWS off at twenty moments; the next one must end with one copy of everything.

``make kill-test-aws`` (about two minutes a moment), or ``python -m tests.rigs.kill_aws_deploy
[FIRST [LAST]]``. The prototype tier, machines only, against the server of tests/rigs/aws. At each
moment, given as a call that AWS has just answered, something ends the deploy: kill -9 of Terraform,
of the launcher, of every process at once, or Ctrl-C. Then: deploy again, look at what is there,
plan (no change), destroy, look again (nothing).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from tests.rigs.aws.census import census
from tests.rigs.aws.rig import AwsRig
from tests.unit.stacks.aws.conftest import BASE

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / ".venv" / "bin"
#: Once each in a whole deploy; several would be twins.
SINGLE = (
    "vpc", "internet gateway", "nat gateway", "address", "vpc endpoint", "flow log", "instance",
    "instance profile", "budget", "schedule group", "log group",
)  # fmt: skip
#: (service, action of the call after which it is cut off), roughly in the order of a deploy.
CALLS = (
    ("iam", "CreateRole"),
    ("ec2", "CreateVpc"),
    ("logs", "CreateLogGroup"),
    ("ec2", "CreateSubnet"),
    ("ec2", "CreateSecurityGroup"),
    ("ec2", "CreateInternetGateway"),
    ("ec2", "AllocateAddress"),
    ("ec2", "CreateNatGateway"),
    ("ec2", "RunInstances"),
    ("ec2", "CreateVpcEndpoint"),
)


def kill_terraform(launcher: subprocess.Popen[str]) -> None:
    for process in psutil.Process(launcher.pid).children(recursive=True):
        if "terraform" in process.name():
            process.kill()


def kill_launcher(launcher: subprocess.Popen[str]) -> None:
    launcher.kill()


def kill_everything(launcher: subprocess.Popen[str]) -> None:
    family = [psutil.Process(launcher.pid), *psutil.Process(launcher.pid).children(recursive=True)]
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def interrupt(launcher: subprocess.Popen[str]) -> None:
    os.killpg(launcher.pid, signal.SIGINT)


WAYS: tuple[Callable[[subprocess.Popen[str]], None], ...] = (
    kill_everything, kill_terraform, kill_launcher, interrupt,
)  # fmt: skip
MOMENTS = [
    (call, WAYS[(number + turn) % len(WAYS)])
    for turn in (0, 1)
    for number, call in enumerate(CALLS)
]


def project(folder: Path) -> None:
    for name in ("node_modules", "playbooks", "models"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "cdktf.json").write_text((ROOT / "cdktf.json").read_text())
    (folder / "deployments").mkdir()
    (folder / "deployments" / "chat.yaml").write_text(json.dumps(BASE))


def start(folder: Path, env: dict[str, str], *words: str) -> subprocess.Popen[str]:
    """``cdktf`` in a session of its own, so that Ctrl-C can be sent to all of it."""
    return subprocess.Popen(
        [str(BIN / "cdktf"), *words],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def run(folder: Path, env: dict[str, str], *words: str) -> str:
    process = start(folder, env, *words)
    output, _ = process.communicate(timeout=900)
    if process.returncode:
        sys.exit(f"cdktf {' '.join(words)} ended with {process.returncode}:\n{output[-6000:]}")
    return output


def answered(rig: AwsRig, service: str, action: str, seen: int) -> bool:
    """Wait until AWS answered such a call, after the first ``seen`` ones."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if any((one["service"], one["action"]) == (service, action) for one in rig.calls()[seen:]):
            return True
        time.sleep(0.02)
    return False


def moment(number: int, rig: AwsRig, env: dict[str, str]) -> None:
    (service, action), way = MOMENTS[number]
    with tempfile.TemporaryDirectory(prefix="kill-aws-") as name:
        folder = Path(name)
        project(folder)
        rig.reset()
        before = census(rig)
        subprocess.run([BIN / "specrack", "lock", "chat"], cwd=folder, env=env, check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip
        seen = len(rig.calls())
        first = start(folder, env, "deploy", "chat", "--auto-approve")
        if not answered(rig, service, action, seen):
            sys.exit(f"{service} {action} was never called")
        way(first)
        first.communicate(timeout=900)
        # Terraform, which outlives a killed launcher, is given the time to end.
        time.sleep(2)
        left = {kind: len(ids) for kind, ids in census(rig).items()}
        said = run(folder, env, "deploy", "chat", "--auto-approve")
        there = census(rig)
        twins = {kind: there.get(kind) for kind in SINGLE if len(there.get(kind, [])) != 1}
        if twins:
            sys.exit(f"moment {number}: not one of each: {twins}\n{said[-6000:]}")
        found = [line for line in said.splitlines() if "specrack:" in line]
        again = run(folder, env, "deploy", "chat", "--auto-approve")
        if "0 added, 0 changed, 0 destroyed" not in again and "No changes" not in again:
            sys.exit(f"moment {number}: the second plan changes something:\n{again[-4000:]}")
        run(folder, env, "destroy", "chat", "--auto-approve")
        if census(rig) != before:
            sys.exit(f"moment {number}: left after the destroy: {census(rig)}")
    print(f"{number + 1:2} {way.__name__} after {action}: good; it had left {left}")
    for line in found:
        print(f"     {line}")
    sys.stdout.flush()


def main() -> None:
    first = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    last = int(sys.argv[2]) if len(sys.argv) > 2 else (first if len(sys.argv) > 1 else len(MOMENTS))
    with tempfile.TemporaryDirectory() as logs:
        rig = AwsRig.start(Path(logs))
        env = {**os.environ, **rig.env, "SPECRACK_LAYERS": "hosts"}
        try:
            for number in range(first - 1, last):
                moment(number, rig, env)
        finally:
            rig.stop()


if __name__ == "__main__":
    main()
