"""When to start a crashed service again."""

from __future__ import annotations

from dataclasses import dataclass

#: Seconds to wait before restart 1, 2, 3, ... The first comes at once: a server that was killed
#: must be back within seconds.
WAITS_S = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
#: A service that was healthy this long has earned a clean slate.
FORGIVE_AFTER_S = 60.0
#: A service that never became healthy is given up after so many starts.
MAX_FIRST_STARTS = 4


@dataclass(frozen=True, slots=True)
class Backoff:
    """Restarts in a row without ``FORGIVE_AFTER_S`` of health between them."""

    in_a_row: int = 0

    def after_crash(self, *, healthy_for_s: float) -> Backoff:
        """The state after one more crash of a service that had been healthy for so long."""
        return Backoff(1 if healthy_for_s >= FORGIVE_AFTER_S else self.in_a_row + 1)

    @property
    def wait_s(self) -> float:
        """Seconds to wait before the next start."""
        return WAITS_S[min(self.in_a_row - 1, len(WAITS_S) - 1)] if self.in_a_row else 0.0
