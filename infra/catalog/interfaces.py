"""Network interfaces of a machine: which card, which device index, which kind.

The layouts are AWS's (source EC2EFA in ``data/sources.yaml``); which one a machine has is data
(``efa_layout`` in ``data/instances/``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from infra.errors import UnsupportedError

if TYPE_CHECKING:
    from infra.catalog.hardware import Instance

Kind = Literal["interface", "efa", "efa-only"]


@dataclass(frozen=True, slots=True)
class Interface:
    """``interface``: plain ENA; ``efa``: ENA and EFA; ``efa-only``: EFA without an IP address."""

    card: int
    device: int
    kind: Kind

    @property
    def takes_address(self) -> bool:
        return self.kind != "efa-only"


def plain() -> tuple[Interface, ...]:
    """One interface without EFA."""
    return (Interface(0, 0, "interface"),)


def with_efa(instance: Instance) -> tuple[Interface, ...]:
    """All EFA interfaces of ``instance``, in the order of the cards.

    ``efa``: card 0 at device 0, each other card at device 1, all with an address. ``efa_only``:
    the same places, but only card 0 takes an address. ``efa_on_others``: card 0 has no EFA and is
    plain; the others are EFA-only at device 0. Device 0 exists once a machine with the first two:
    AWS refuses the launch otherwise.

    Raises UnsupportedError for a machine without EFA.
    """
    count = instance.efa_interfaces
    if count == 0 or instance.efa_layout is None:
        raise UnsupportedError(
            f"{instance.name} has no EFA", do="choose a machine with EFA for this tier"
        )
    if instance.efa_layout == "efa_on_others":
        others = tuple(Interface(card, 0, "efa-only") for card in range(1, count + 1))
        return (*plain(), *others)
    rest: Kind = "efa" if instance.efa_layout == "efa" else "efa-only"
    return (
        Interface(0, 0, "efa"),
        *(Interface(card, 1, rest) for card in range(1, count)),
    )
