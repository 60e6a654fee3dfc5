"""What can be judged about a deployment with the catalogue alone: tier, site, engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from infra.catalog import Catalog, catalog
from infra.errors import Problem
from infra.spec.words import did_you_mean, shown_text

if TYPE_CHECKING:
    from infra.spec.model import Deployment

#: A kind of site -> how it is written in a deployment file.
SITES = {"local": "local", "aws": "aws/<region>", "rack": "rack/<name>"}


def check(
    deployment: Deployment,
    *,
    path: str,
    line_of: Callable[[str], int | None] = lambda key: None,
    known: Catalog | None = None,
) -> list[Problem]:
    """The problems of ``deployment`` against the catalogue ``known`` (the built-in one).

    ``path``: the file as shown to the user. ``line_of``: dotted key -> line of that key.
    """
    found = check_values(
        tier=deployment.tier,
        site=deployment.site,
        engine=deployment.serving.engine,
        known=known,
    )
    return [Problem(path, line_of(key), key, what) for key, what in found]


def check_values(
    *, tier: str | None, site: str | None, engine: str | None, known: Catalog | None = None
) -> Iterator[tuple[str, str]]:
    """(dotted key, what is wrong) for values of which some may be unknown (None)."""
    if tier is None:
        return
    known = known or catalog()
    if tier not in known.tier_names:
        hint = did_you_mean(tier, known.tier_names)
        listed = f" known are {', '.join(known.tier_names)}" if hint.startswith("did") else ""
        yield "tier", f"unknown tier {shown_text(tier)}, {hint}{listed}"
        return
    row = known.tier(tier)
    if site is not None and site.split("/")[0] not in row.sites:
        wanted = " or ".join(SITES[kind] for kind in row.sites)
        yield "site", f"tier {tier} wants {wanted}, got {shown_text(site)}"
    if engine is not None and engine not in row.engines.offered:
        offered = ", ".join(row.engines.offered)
        yield "serving.engine", f"tier {tier} offers {offered}; got {engine}"
