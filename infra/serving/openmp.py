"""libgomp, GCC's OpenMP library, which llama.cpp's shared library wants from the system.

A minimal Debian has none, and installing it takes root. The wheel ``pykdtree`` (0.5 MB) carries
a copy under a name of its own; ``make setup`` installs it where the system's is missing, and the
server process starts itself once more with a folder on the loader's path in which the copy has
the name that is looked for. (Linux; elsewhere the engine's wheel needs none.)
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from pathlib import Path

from infra.errors import InputError

LIBRARY = "libgomp.so.1"
CARRIER = "pykdtree"
_STARTED_AGAIN = "SPECRACK_OPENMP_FOLDER"


def system_has_it() -> bool:
    """Can the dynamic loader find libgomp?"""
    if sys.platform != "linux":
        return True
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return False
    return True


def carried() -> Path | None:
    """The copy in the carrier's wheel, or None."""
    spec = importlib.util.find_spec(CARRIER)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parents[1] / f"{CARRIER}.libs"
    return next(iter(sorted(folder.glob("libgomp-*.so*"))), None)


def ensure(folder: Path) -> None:
    """Return when libgomp can be loaded; else start this process again (same process id) with the
    carried copy linked below ``folder``. Raises InputError when there is no copy either."""
    if system_has_it():
        return
    copy = carried()
    if copy is None or _STARTED_AGAIN in os.environ:
        raise InputError(
            f"{LIBRARY} (GCC's OpenMP library) not found",
            do="run make setup, or install it (Debian: libgomp1)",
        )
    link = folder / "lib" / LIBRARY
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(copy)
    former = os.environ.get("LD_LIBRARY_PATH")
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(
        [str(link.parent), *([former] if former else [])]
    )
    os.environ[_STARTED_AGAIN] = str(link.parent)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606
