"""What `python -m stacks` costs: CPU seconds and memory of all its processes, Node included.

``python tests/bench/synth.py [NAME...]``, in a Specrack project. CPU is that of every descendant
(this process adopts and collects them). Memory is given twice: the largest process alone (resident
set, what ``time -v`` shows), and the highest sum of proportional set sizes of all, in samples 20 ms
apart. Linux only.
"""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from infra.tools import node

_PR_SET_CHILD_SUBREAPER = 36


def pss_mb(process: psutil.Process) -> float:
    """Proportional set size, MB (1e6 bytes); 0 when it is gone."""
    try:
        return float(process.memory_full_info().pss) / 1e6
    except psutil.Error:
        return 0.0


def measure(names: list[str]) -> tuple[float, float, float, float]:
    """CPU seconds, wall seconds, MB of the largest process, MB of all together, of one synth."""
    env = node.quiet(dict(os.environ), node.find()) | {"SPECRACK_DEPLOYMENTS": " ".join(names)}
    with tempfile.TemporaryDirectory() as out:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "stacks"], env=env | {"CDKTF_OUTDIR": out}
        )
        highest = 0.0
        while process.poll() is None:
            family = psutil.Process().children(recursive=True)
            highest = max(highest, sum(pss_mb(one) for one in family))
            time.sleep(0.02)
        wall_s = time.monotonic() - start
        while True:
            try:
                os.wait()
            except ChildProcessError:
                break
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        sys.exit(process.returncode)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # Of all collected children so far, which are synths alike; in KiB on Linux.
    return cpu_s, wall_s, after.ru_maxrss * 1024 / 1e6, highest


def main() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    names = sys.argv[1:]
    measure(names)
    for _ in range(3):
        cpu_s, wall_s, largest_mb, all_mb = measure(names)
        print(
            f"{cpu_s:.2f} s CPU, {wall_s:.2f} s; largest process {largest_mb:.0f} MB, "
            f"all together {all_mb:.0f} MB",
            flush=True,
        )
    modules = subprocess.run(
        [sys.executable, "-c", "import stacks.app, sys; print(*sorted(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    bindings = [name for name in modules if name.startswith("cdktf_cdktf_provider")]
    print(f"provider bindings loaded: {bindings or 'none'}")
    print(f"run in {Path.cwd().name}: {' '.join(names) or 'all deployments'}")


if __name__ == "__main__":
    main()
