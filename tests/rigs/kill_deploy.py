"""Kill a deploy with -9 at ten different moments; each time the next deploy must end in PASS.

``make kill-test``, or ``python tests/rigs/kill_deploy.py --deployment local --moments 10``. The
moments are spread over the time that an undisturbed deploy takes. Two kinds of kill take turns:
the ``cdktf`` command itself, and every process of the deploy at once (a power cut, without the
servers). After each the deploy is run again and looked at: verdict PASS, one supervisor, one
server a role, no process left of the killed deploy, no lock held.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
CDKTF = ROOT / ".venv" / "bin" / "cdktf"
#: What the processes of a deploy have in their command lines, whoever else works in this folder.
PROGRAMS = ("cdktf", "terraform", "tofu", "-m infra", "-m stacks", "ansible", "llamacpp", "jsii")


@dataclass(frozen=True)
class Kill:
    """One moment and what is killed."""

    after_s: float
    everything: bool

    def __str__(self) -> str:
        return f"{self.after_s:5.1f} s, {'every process' if self.everything else 'cdktf alone'}"


def cdktf(*arguments: str, log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as stream:
        return subprocess.Popen(
            [str(CDKTF), *arguments], cwd=ROOT, stdout=stream, stderr=subprocess.STDOUT
        )


def is_ours(process: psutil.Process) -> bool:
    """A process of this project, by command line or folder; this script's own line is not."""
    if process.pid in {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}:
        return False
    try:
        words = " ".join([process.cwd(), *process.cmdline()])
    except psutil.Error:
        return False
    return str(ROOT) in words and any(name in words for name in PROGRAMS)


def of_deploy() -> list[psutil.Process]:
    """Processes of a running deploy: everything of ours but the supervised servers."""
    found = []
    for process in psutil.process_iter():
        if not is_ours(process) or process.status() == psutil.STATUS_ZOMBIE:
            continue
        if supervised(process):
            continue
        found.append(process)
    return found


def supervised(process: psutil.Process) -> bool:
    """The supervisor (it leaves the deploy on purpose) or a server below it."""
    try:
        chain = [process, *process.parents()]
        return any(
            "infra.supervisor" in (words := one.cmdline()) and "serve" in words for one in chain
        )
    except psutil.Error:
        return False


def supervisors() -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if is_ours(process)
        and "infra.supervisor" in (process.info["cmdline"] or [])
        and "serve" in (process.info["cmdline"] or [])
        and process.status() != psutil.STATUS_ZOMBIE
    ]


def try_once(kill: Kill, deployment: str, log: Path, *, fresh: bool) -> list[str]:
    """Deploy, kill, deploy again. What is wrong afterwards, one line each."""
    if fresh:
        cdktf("destroy", deployment, log=log).wait()
    process = cdktf("deploy", deployment, log=log)
    time.sleep(kill.after_s)
    if kill.everything:
        for victim in of_deploy():
            with contextlib.suppress(psutil.Error):
                victim.kill()
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    process.wait()
    faults = []
    again = cdktf("deploy", deployment, log=log)
    if (status := again.wait()) != 0:
        faults.append(f"the next deploy ended with {status}")
    if len(found := supervisors()) != 1:
        faults.append(f"{len(found)} supervisors")
    servers = [child for one in supervisors() for child in one.children()]
    if len(servers) not in (1, 2):
        faults.append(f"{len(servers)} servers")
    time.sleep(0.5)
    if left := of_deploy():
        faults.append("left: " + "; ".join(" ".join(p.cmdline())[:120] for p in left))
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--deployment", default="local")
    parser.add_argument("--moments", type=int, default=10)
    parser.add_argument("--log", type=Path, default=ROOT / ".specrack" / "kill-test.log")
    options = parser.parse_args()
    options.log.parent.mkdir(parents=True, exist_ok=True)
    options.log.unlink(missing_ok=True)

    cdktf("destroy", options.deployment, log=options.log).wait()
    start = time.monotonic()
    if cdktf("deploy", options.deployment, log=options.log).wait() != 0:
        print(f"an undisturbed deploy fails; see {options.log}")
        return 1
    whole_s = time.monotonic() - start
    print(f"an undisturbed deploy takes {whole_s:.1f} s", flush=True)
    failed = 0
    for number in range(options.moments):
        kill = Kill(whole_s * (number + 0.5) / options.moments, everything=number % 2 == 1)
        faults = try_once(kill, options.deployment, options.log, fresh=True)
        failed += bool(faults)
        print(f"{number + 1:2}  killed after {kill}: {'; '.join(faults) or 'PASS'}", flush=True)
    cdktf("destroy", options.deployment, log=options.log).wait()
    if left := supervisors():
        print(f"left after destroy: {left}")
        failed += 1
    print(f"{options.moments - failed} passed, {failed} failed")
    if failed:
        print(f"the output of all deploys: {options.log}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
