"""Is a server well? One GET, short, straight to the loopback address."""

from __future__ import annotations

import http.client


def answers(port: int, path: str, *, timeout_s: float = 2.0) -> bool:
    """Does GET ``path`` on 127.0.0.1:``port`` answer with status 200?

    Never through a proxy: ``http.client`` knows none.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
