"""How long a step of a deploy may take before it is interrupted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from infra.errors import InputError

VARIABLE = "SPECRACK_STEP_DEADLINE_MIN"
#: Minutes. An apply holds the provider's own waits (a cluster 15, a node group 20), Ansible
#: (drivers, models to download) and the smoke run; it also waits for the user's yes.
MINUTES = {"synth": 10.0, "init": 30.0, "plan": 30.0, "apply": 180.0, "destroy": 120.0}
#: Everything else that cdktf asks Terraform for: output, show, version.
OTHER = 10.0
LONGEST = 7 * 24 * 60.0


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Minutes by kind of step."""

    minutes: Mapping[str, float]

    def seconds(self, action: str) -> float:
        return 60 * self.minutes.get(action, self.minutes.get("other", OTHER))


def read(text: str | None) -> Deadlines:
    """``90`` for all steps, or ``apply=240,init=20`` for some. Raises InputError."""
    if not text or not text.strip():
        return Deadlines(MINUTES)
    kinds = (*MINUTES, "other")
    if "=" not in text:
        return Deadlines(dict.fromkeys(kinds, _minutes(text, text)))
    chosen = dict(MINUTES)
    for part in text.split(","):
        kind, _, value = part.partition("=")
        if kind.strip() not in kinds:
            raise InputError(
                f"{VARIABLE}={text}: {kind.strip() or 'an empty word'} is no step",
                do=f"write minutes, or pairs such as apply=240; steps: {', '.join(kinds)}",
            )
        chosen[kind.strip()] = _minutes(value, text)
    return Deadlines(chosen)


def _minutes(word: str, text: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = -1.0
    if not 0 < value <= LONGEST:
        raise InputError(
            f"{VARIABLE}={text}: {word.strip() or 'nothing'} is no number of minutes",
            do=f"write a number above 0 and up to {LONGEST:.0f}",
        )
    return value
