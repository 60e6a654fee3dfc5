"""How a request can end. Every failure of the wire or of the engine is one of these."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """``OK``, or the class of the failure; the values are what reports print."""

    OK = "ok"
    DNS = "dns"
    CONNECT_REFUSED = "connect_refused"
    CONNECT_FAILED = "connect_failed"
    TIMEOUT_CONNECT = "timeout_connect"
    TLS = "tls"
    TIMEOUT_FIRST_BYTE = "timeout_first_byte"
    STALLED = "stalled"
    TIMEOUT_TOTAL = "timeout_total"
    RESET = "reset"
    TRUNCATED = "truncated"
    PROTOCOL = "protocol"
    HTTP_3XX = "http_3xx"
    HTTP_4XX = "http_4xx"
    HTTP_5XX = "http_5xx"
    BROKEN_SSE = "broken_sse"
    ENGINE_ERROR = "engine_error"
    NO_TOKENS = "no_tokens"


#: One sentence each, for people.
MEANING: dict[Outcome, str] = {
    Outcome.OK: "complete",
    Outcome.DNS: "the host's name could not be resolved",
    Outcome.CONNECT_REFUSED: "nothing listens there",
    Outcome.CONNECT_FAILED: "no connection could be made",
    Outcome.TIMEOUT_CONNECT: "no connection within the time-out",
    Outcome.TLS: "the TLS handshake failed",
    Outcome.TIMEOUT_FIRST_BYTE: "no byte of a reply within the time-out",
    Outcome.STALLED: "the stream went silent in mid-reply",
    Outcome.TIMEOUT_TOTAL: "not complete within the time-out",
    Outcome.RESET: "the connection was cut in mid-reply",
    Outcome.TRUNCATED: "the stream ended without [DONE] or a finish_reason",
    Outcome.PROTOCOL: "the reply is not the HTTP that was asked for",
    Outcome.HTTP_3XX: "redirected",
    Outcome.HTTP_4XX: "refused by the server",
    Outcome.HTTP_5XX: "the server failed",
    Outcome.BROKEN_SSE: "an event of the stream is not JSON of the OpenAI kind",
    Outcome.ENGINE_ERROR: "the engine sent an error inside the stream",
    Outcome.NO_TOKENS: "the stream ended well but held no token",
}


def of_status(status: int) -> Outcome:
    """The outcome of an HTTP status code."""
    if status // 100 == 2:
        return Outcome.OK
    by_class = {3: Outcome.HTTP_3XX, 4: Outcome.HTTP_4XX, 5: Outcome.HTTP_5XX}
    return by_class.get(status // 100, Outcome.PROTOCOL)
