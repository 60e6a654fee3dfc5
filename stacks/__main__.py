"""``python -m stacks``: the app that cdktf runs (cdktf.json)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from infra.errors import SpecrackError
from infra.paths import find_root
from infra.spec.loader import load_all


def main() -> int:
    """Synthesize the stacks. Errors are one line each on stderr; exit status 2."""
    try:
        root = find_root()
        names = os.environ.get("SPECRACK_DEPLOYMENTS", "").split()
        deployments = load_all(root, names)
        # After the cheap checks: this loads jsii, and with it Node.
        from stacks.app import build, drop_stale_backend

        outdir = Path(os.environ.get("CDKTF_OUTDIR", "cdktf.out"))
        drop_stale_backend(outdir, deployments, root)
        build(deployments, root=root).synth()
    except SpecrackError as error:
        for line in error.lines:
            print(f"specrack: {line}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
