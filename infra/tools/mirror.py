"""Terraform providers without the registry: from a folder that mirrors it.

Terraform installs ``hashicorp/aws`` (700 MB) from the public registry. Where that cannot be
reached, or where ``SPECRACK_TF_MIRROR`` names a mirror, it is told to take providers from there.
Only deployments that need a provider ask this module anything.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from infra.errors import InputError, ToolError
from infra.files import read_json, write_atomic, write_json

OVERRIDE = "SPECRACK_TF_MIRROR"
CLI_CONFIG = "TF_CLI_CONFIG_FILE"
PLUGIN_CACHE = "TF_PLUGIN_CACHE_DIR"
CACHE_WITHOUT_LOCK = "TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE"
#: The host part of a provider's address, and the name of the top folder of a mirror.
REGISTRY = "registry.terraform.io"
DISCOVERY = f"https://{REGISTRY}/.well-known/terraform.json"
#: Seconds that the registry has to answer, and how long what it did is remembered.
PROBE_S = 3.0
REMEMBER_S = 600.0
#: Where mirrors are by convention; Terraform's own implied ones, and what images carry.
PLACES = ("~/.terraform.d/plugins", "/usr/local/share/terraform/plugins")
IMAGES = "/opt"


@dataclass(frozen=True, slots=True)
class Mirror:
    """A folder with ``registry.terraform.io/<namespace>/<name>/...`` in it."""

    path: Path

    @property
    def providers(self) -> tuple[str, ...]:
        """What it holds, as ``hashicorp/aws``."""
        found = (self.path / REGISTRY).glob("*/*")
        return tuple(sorted(f"{one.parent.name}/{one.name}" for one in found if one.is_dir()))


@dataclass(frozen=True, slots=True)
class Choice:
    """How Terraform gets its providers: variables to set, options for cdktf."""

    env: Mapping[str, str]
    options: tuple[str, ...] = ()


def candidates(env: Mapping[str, str], *, images: Path = Path(IMAGES)) -> list[Path]:
    """Folders to look at, the best first."""
    found = [Path(place).expanduser() for place in PLACES]
    with contextlib.suppress(OSError):
        found += sorted(images.iterdir())
    return found


def find(
    env: Mapping[str, str], wanted: Iterable[str], *, images: Path = Path(IMAGES)
) -> Mirror | None:
    """The mirror that holds all ``wanted`` providers, or None.

    Raises InputError when ``SPECRACK_TF_MIRROR`` names something else than such a mirror.
    """
    need = set(wanted)
    if named := env.get(OVERRIDE):
        mirror = Mirror(Path(named).expanduser().absolute())
        lacks = sorted(need - set(mirror.providers))
        if lacks:
            raise InputError(
                f"{OVERRIDE}={named}: no {', '.join(lacks)} there",
                do=f"name a folder that holds {REGISTRY}/{lacks[0]}/VERSION/OS_ARCH, as "
                "`terraform providers mirror` writes it",
            )
        return mirror
    for folder in candidates(env, images=images):
        mirror = Mirror(folder)
        if need <= set(mirror.providers):
            return mirror
    return None


def reachable() -> bool:
    """Does the registry answer? Proxies of the environment are used."""
    try:
        with urllib.request.urlopen(DISCOVERY, timeout=PROBE_S) as answer:
            return isinstance(json.loads(answer.read()), dict)
    except (OSError, ValueError, urllib.error.URLError):
        return False


def remembered(cache: Path, probe: Callable[[], bool] = reachable) -> bool:
    """``probe()``, or what it said within the last minutes."""
    path = cache / "registry.json"
    known = read_json(path)
    if isinstance(known, dict):
        age_s = time.time() - float(known.get("at", 0))
        if 0 <= age_s < REMEMBER_S and isinstance(known.get("reachable"), bool):
            return bool(known["reachable"])
    answer = probe()
    write_json(path, {"at": time.time(), "reachable": answer})
    return answer


def choose(
    env: Mapping[str, str],
    cache: Path,
    wanted: Iterable[str],
    *,
    images: Path = Path(IMAGES),
    probe: Callable[[], bool] = reachable,
) -> Choice:
    """How Terraform shall get the providers ``wanted``. ``cache``: a folder of ours.

    A user's own configuration wins: ``TF_CLI_CONFIG_FILE``, or a ``provider_installation`` in
    ``~/.terraformrc``. Raises ToolError when there is neither registry nor mirror.
    """
    names = tuple(wanted)
    shared = _shared_cache(env, cache)
    own = env.get(CLI_CONFIG)
    if own and Path(own).exists():
        # Theirs may well be a mirror, for which cdktf's call to the registry would fail.
        offline = "filesystem_mirror" in _text(Path(own))
        return Choice(shared, ("--skip-provider-lock",) if offline else ())
    home = _text(Path("~/.terraformrc").expanduser())
    if "provider_installation" in home:
        offline = "filesystem_mirror" in home
        return Choice(shared, ("--skip-provider-lock",) if offline else ())
    if not env.get(OVERRIDE) and remembered(cache, probe):
        return Choice(shared)
    mirror = find(env, names, images=images)
    if mirror is None:
        raise ToolError(
            f"the Terraform registry cannot be reached, and no mirror holds {', '.join(names)}",
            do=f"check the network, or make a mirror with `terraform providers mirror` and "
            f"set {OVERRIDE}",
        )
    path = cache / "mirror.tfrc"
    text = cli_config(mirror, home)
    if _text(path) != text:
        write_atomic(path, text)
    # Terraform links what a mirror holds unpacked; a cache would only copy it.
    return Choice({CLI_CONFIG: str(path)}, ("--skip-provider-lock",))


def cli_config(mirror: Mirror, more: str = "") -> str:
    """A Terraform CLI configuration: these providers from the mirror, others from the registry."""
    patterns = ", ".join(json.dumps(f"{REGISTRY}/{name}") for name in mirror.providers)
    return (
        (f"{more.rstrip()}\n\n" if more.strip() else "") + "provider_installation {\n"
        "  filesystem_mirror {\n"
        f"    path    = {json.dumps(str(mirror.path))}\n"
        f"    include = [{patterns}]\n"
        "  }\n"
        "  direct {\n"
        f"    exclude = [{patterns}]\n"
        "  }\n"
        "}\n"
    )


def _shared_cache(env: Mapping[str, str], cache: Path) -> dict[str, str]:
    """One copy of a downloaded provider for all stacks, unless the user has a cache already.

    Sound because cdktf runs ``init`` for one stack after the other, and ``specrack-terraform``
    lets one ``init`` run at a time across commands. The lock files that may lack checksums of
    other platforms are below ``cdktf.out``, where nobody keeps them.
    """
    if PLUGIN_CACHE in env or "plugin_cache_dir" in _text(Path("~/.terraformrc").expanduser()):
        return {}
    folder = cache / "plugins"
    folder.mkdir(parents=True, exist_ok=True)
    return {PLUGIN_CACHE: str(folder), CACHE_WITHOUT_LOCK: "1"}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def cache_folder(root: Path) -> Path:
    """Where the launcher keeps what this module writes."""
    return root / ".specrack" / "cache" / "terraform"


def installed(env: Mapping[str, str] = os.environ) -> bool:
    """Is a shared cache of ours in use? Then one ``init`` at a time."""
    return PLUGIN_CACHE in env and CACHE_WITHOUT_LOCK in env
