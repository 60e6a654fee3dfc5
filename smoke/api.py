"""The harness as one function call."""

from __future__ import annotations

import asyncio
import importlib.metadata
import signal
import threading
from collections.abc import Callable
from types import FrameType

from infra.spec.model import Load, Sla
from smoke.measured import Measured
from smoke.options import Options, Target
from smoke.preflight import AcceptanceReader
from smoke.progress import DONE, Progress, silent
from smoke.report.build import build
from smoke.report.model import Report
from smoke.runner import measure

_Handler = Callable[[int, FrameType | None], object] | int | None


def run(
    target: Target,
    sla: Sla,
    load: Load,
    options: Options,
    acceptance_reader: AcceptanceReader,
    progress: Progress = silent,
) -> Report:
    """Measure ``target`` under ``load`` and judge it by ``sla``; blocks until decided.

    Writes nothing. Raises InputError for options or a target that cannot be used, EndpointError
    when nothing could be measured, KeyboardInterrupt on Ctrl-C. On SIGTERM the run is stopped
    cleanly and the signal is given to the handler that was there before; where there was none,
    SystemExit(143) is raised. Call it from a thread without a running event loop.
    """
    loop_factory, loop_name = _loop_factory()
    terminated: list[_Handler] = []
    found: Measured | None = None
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        try:
            found = runner.run(
                _until_terminated(
                    terminated, target, sla, load, options, acceptance_reader, progress
                )
            )
        except asyncio.CancelledError:
            if not terminated:
                raise
        finally:
            progress(DONE, 0, 0)
    if found is None:
        handler = terminated[0]
        if callable(handler):
            handler(signal.SIGTERM, None)
        raise SystemExit(128 + signal.SIGTERM)
    return build(found, event_loop=loop_name)


async def _until_terminated(
    terminated: list[_Handler],
    target: Target,
    sla: Sla,
    load: Load,
    options: Options,
    reader: AcceptanceReader,
    progress: Progress,
) -> Measured:
    """``measure``, cancelled by SIGTERM. A handler that raises in the middle of an event loop
    would be swallowed by whichever callback it interrupts, so the loop takes the signal."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    previous: _Handler = signal.SIG_IGN
    if threading.current_thread() is threading.main_thread():
        previous = signal.getsignal(signal.SIGTERM)

    def terminate() -> None:
        terminated.append(previous)
        if task is not None:
            task.cancel()

    handled = previous not in (signal.SIG_IGN, None)
    if handled:
        loop.add_signal_handler(signal.SIGTERM, terminate)
    try:
        return await measure(target, sla, load, options, reader, progress)
    finally:
        if handled:
            loop.remove_signal_handler(signal.SIGTERM)
            signal.signal(signal.SIGTERM, previous)


def _loop_factory() -> tuple[Callable[[], asyncio.AbstractEventLoop] | None, str]:
    try:
        import uvloop  # slow to load, and not needed to read a report
    except ImportError:  # not made for every platform
        return None, "asyncio"
    return uvloop.new_event_loop, f"uvloop {importlib.metadata.version('uvloop')}"
