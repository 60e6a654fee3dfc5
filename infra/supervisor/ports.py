"""TCP ports on the loopback interface: chosen, kept, and who has one."""

from __future__ import annotations

import errno
import socket

import psutil


def is_free(port: int) -> bool:
    """Can a server bind 127.0.0.1:``port`` now?"""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: a port whose last connections are still closing is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
        return True


def choose(preferred: int | None, *, taken: frozenset[int] = frozenset()) -> int:
    """A free port: the preferred one when it is free, else one that the kernel picks."""
    if preferred is not None and preferred not in taken and is_free(preferred):
        return preferred
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if port not in taken:
            return port


def owner(port: int) -> str:
    """Who listens on ``port``, for a message: ``process 123 (nginx)``; empty if not to be seen."""
    try:
        for connection in psutil.net_connections(kind="tcp"):
            if (
                connection.status == psutil.CONN_LISTEN
                and connection.laddr
                and connection.laddr.port == port
                and connection.pid
            ):
                return f"process {connection.pid} ({psutil.Process(connection.pid).name()})"
    except psutil.Error:
        pass
    return ""
