"""A timer of the operating system that an event loop can wait for like a socket."""

from __future__ import annotations

import contextlib
import ctypes
import os
import time

_NS_PER_S = 1_000_000_000


class KernelTimer:
    """Linux's ``timerfd``: a file that becomes readable when time is up.

    Python has it from 3.13 on; until then it is called through ctypes. Raises OSError or
    AttributeError where there is none.
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd: int = self._libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create failed")

    def set(self, delay_ns: int) -> None:
        """Become readable once, ``delay_ns`` from now."""
        # struct itimerspec: interval and first expiry, each in seconds and nanoseconds.
        spec = (ctypes.c_long * 4)(0, 0, *divmod(delay_ns, _NS_PER_S))
        self._libc.timerfd_settime(self.fd, 0, ctypes.byref(spec), None)

    def read(self) -> None:
        """Take note of the expiry, so that the file is no longer readable."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.fd, 8)

    def close(self) -> None:
        os.close(self.fd)
