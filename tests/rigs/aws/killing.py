"""Ways to cut a deploy off at a chosen moment, and what must be so afterwards."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.rigs.aws import inventory
from tests.rigs.aws.project import AwsProject

#: How long a held call waits for the killer; long enough for a slow machine.
HOLD_S = 20.0
#: How long to wait for the moment to come.
MOMENT_S = 120.0


@dataclass(frozen=True)
class Moment:
    """``action`` of ``service`` has been done by AWS, and Terraform does not know it yet: then
    ``how``. Without an action: after ``seconds``. ``s3``: the state is in a bucket."""

    how: str
    service: str = ""
    action: str = ""
    nth: int = 1
    seconds: float = 0.0
    s3: bool = False

    def __str__(self) -> str:
        when = f"in {self.action}" if self.action else f"after {self.seconds:g} s"
        return f"{HOW[self.how]} {when}" + (", state in S3" if self.s3 else "")


HOW = {
    "terraform": "kill -9 of terraform",
    "launcher": "kill -9 of the cdktf command",
    "node": "kill -9 of cdktf-cli",
    "all": "kill -9 of every process",
    "ctrl-c": "Ctrl-C",
    "disk": "full disk",
}


def processes(project: AwsProject) -> list[psutil.Process]:
    """Living processes of the project, by folder or command line."""
    found = []
    for process in psutil.process_iter():
        try:
            words = " ".join([process.cwd(), *process.cmdline()])
        except psutil.Error:
            continue
        if str(project.root) in words and process.status() != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def terraforms(project: AwsProject) -> list[psutil.Process]:
    """Terraform itself, neither its launcher nor its providers."""
    return [one for one in processes(project) if one.name() in ("terraform", "tofu")]


def _kill(victims: list[psutil.Process]) -> None:
    for victim in victims:
        with contextlib.suppress(psutil.Error):
            victim.kill()


def fill(folder: Path) -> Path:
    """Leave no room on the file system of ``folder``. Returns the file to remove."""
    path = folder / "filler"
    with path.open("wb", buffering=0) as stream:
        for size in (65536, 4096, 512, 1):
            try:
                while True:
                    stream.write(b"x" * size)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
    return path


def cut_off(project: AwsProject, moment: Moment, log: Path, *, name: str = "chat") -> None:
    """Deploy, and cut it off. Returns when nothing of it works any more."""
    rig = project.rig
    before = len(rig.calls())
    if moment.action:
        rig.faults(
            {
                "service": moment.service,
                "action": moment.action,
                "nth": moment.nth,
                "when": "after",
                "delay_s": HOLD_S if moment.how != "ctrl-c" else 4.0,
            }
        )
    process = project.start("cdktf", "deploy", name, "--auto-approve", log=log)
    filler = None
    try:
        if moment.action:
            if not rig.wait_for_fault(timeout_s=MOMENT_S, after=before):
                raise RuntimeError(f"{moment}: the moment never came; see {log}")
        else:
            time.sleep(moment.seconds)
        if moment.how == "terraform":
            _kill(terraforms(project))
        elif moment.how == "launcher":
            process.kill()
        elif moment.how == "node":
            _kill([one for one in psutil.Process(process.pid).children() if one.name() == "node"])
        elif moment.how == "all":
            _kill(processes(project))
        elif moment.how == "ctrl-c":
            # What a terminal does: everything in the foreground group gets it.
            os.killpg(process.pid, signal.SIGINT)
        elif moment.how == "disk":
            rig.faults()
            filler = fill(project.root)
        process.wait(timeout=180)
    finally:
        rig.faults()
        if filler is not None:
            filler.unlink()
        if process.poll() is None:
            process.kill()
            process.wait()


@dataclass(frozen=True)
class After:
    """What the next deploy did."""

    status: int
    said: list[str]
    faults: list[str]


def deploy_again(
    project: AwsProject,
    moment: Moment,
    wanted: Counter[str],
    *,
    name: str = "chat",
    look: Callable[[str], None] = lambda _: None,
) -> After:
    """The next deploy, with the lock removed when it asks for that. What is wrong afterwards."""
    faults = []
    done = project.deploy(name)
    look(done.stdout + done.stderr)
    said = ours(done)
    if moment.s3 and done.returncode != 0:
        unlock = re.search(r"specrack backend unlock (\S+) --lock-id (\S+?)[;)\s]", done.stderr)
        if unlock is None:
            return After(done.returncode, said, ["no way to remove the lock was shown"])
        if "no such process is left" not in done.stderr:
            faults.append("the lock's owner was not called dead")
        freed = project.run("specrack", "backend", "unlock", unlock[1], "--lock-id", unlock[2])
        look(freed.stdout + freed.stderr)
        if freed.returncode != 0:
            return After(freed.returncode, said, [f"unlock failed: {freed.stderr.strip()}"])
        done = project.deploy(name)
        look(done.stdout + done.stderr)
        said += ours(done)
    if done.returncode != 0:
        faults.append(f"the next deploy ended with {done.returncode}")
    if difference := inventory.difference(inventory.count(project.rig), wanted):
        faults.append(difference)
    plan = project.run("cdktf", "diff", name)
    look(plan.stdout + plan.stderr)
    if "No changes." not in plan.stdout:
        found = re.search(r"Plan: [^\n]*", plan.stdout)
        faults.append(f"the plan afterwards is not empty ({found[0] if found else 'failed'})")
    if left := [" ".join(one.cmdline())[:100] for one in processes(project)]:
        faults.append(f"left: {left}")
    return After(done.returncode, said, faults)


def ours(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The launcher's own lines."""
    return [line for line in done.stderr.splitlines() if line.startswith("specrack:")]


def use_bucket(project: AwsProject, bucket: str = "specrack-states") -> None:
    """Keep the project's states in S3, as a user would."""
    done = project.run(
        "specrack", "backend", "init", "--bucket", bucket, "--region", project.rig.region
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr)


def use_this_machine(project: AwsProject) -> None:
    """Back to local states, with nothing left of any."""
    path = project.root / "cdktf.json"
    content = json.loads(path.read_text())
    content.get("context", {}).pop("specrack", None)
    path.write_text(json.dumps(content, indent=2))


def forget(project: AwsProject) -> None:
    """An account and a project in which nothing was ever deployed."""
    import shutil

    project.rig.reset()
    use_this_machine(project)
    for key in ("chat-prototype", "answers-scaled"):
        shutil.rmtree(project.base(key), ignore_errors=True)
    shutil.rmtree(project.root / "cdktf.out" / "stacks", ignore_errors=True)
