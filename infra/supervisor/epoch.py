"""The epoch of a local deployment: how often its servers were found gone.

A real host starts its servers again after a reboot; this machine does not. So the stack asks
here, at synth, whether what was configured still runs. If not, the epoch is one higher, the
configure step has a new trigger, and the deploy brings the servers back. Nothing is written.
"""

from __future__ import annotations

from infra.files import read_json
from infra.paths import StatePaths
from infra.supervisor.state import read_state


def current_epoch(paths: StatePaths) -> int:
    """The epoch to synthesize with: that of the last configure run while its servers are
    supervised, else the next one."""
    configured = read_json(paths.configured)
    if not isinstance(configured, dict):
        return 0
    epoch = int(configured.get("epoch", 0))
    state = read_state(paths.run)
    return epoch if state is not None and state.alive and not state.failed else epoch + 1
