"""Settings that all tests share."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# A busy machine is no fault of the code. CI tries the same examples every time, so that a red run
# can be repeated; at a desk they are new every time.
settings.register_profile(
    "specrack",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
)
settings.load_profile("specrack")
