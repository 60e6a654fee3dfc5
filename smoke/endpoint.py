"""Where the endpoint is: its URL taken apart and checked; proxies and keys of the environment."""

from __future__ import annotations

import ipaddress
import os
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from infra.errors import InputError

#: The only place a secret is read from. It is sent as ``Authorization: Bearer`` and never printed.
API_KEY_VARIABLE = "SPECRACK_API_KEY"

_DEFAULT_PORT = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host and port: what a connection is made to."""

    scheme: str
    host: str
    port: int

    @property
    def tls(self) -> bool:
        return self.scheme == "https"

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORT[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host_header}"


@dataclass(frozen=True, slots=True)
class Url:
    """An origin and a path below it."""

    origin: Origin
    path: str

    def __str__(self) -> str:
        return f"{self.origin}{self.path}"

    def below(self, path: str) -> Url:
        """This URL with ``path`` (starting with a slash) added."""
        return Url(self.origin, self.path + path)


def parse_url(text: str, *, what: str = "the URL") -> Url:
    """Take ``text`` apart; a trailing slash is dropped. Raises InputError, naming ``what``."""
    if not text.isprintable() or " " in text:
        raise InputError(f"{what} holds blanks or control characters: {text!r}")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise InputError(f"{what} {text!r} is not a URL: {error}") from None
    if parts.scheme not in _DEFAULT_PORT:
        raise InputError(
            f"{what} {_without_secrets(text)!r} must start with http:// or https://",
            do="for example http://127.0.0.1:8000",
        )
    if parts.username is not None or parts.password is not None:
        raise InputError(
            f"{what} holds a user name or password",
            do=f"put the key into the environment variable {API_KEY_VARIABLE} instead",
        )
    if not parts.hostname:
        raise InputError(f"{what} {text!r} names no host")
    if parts.query or parts.fragment:
        raise InputError(
            f"{what} {text.partition('?')[0].partition('#')[0]!r} has a query or fragment",
            do="give scheme, host, port and path only",
        )
    try:
        host = parts.hostname.encode("idna").decode() if ":" not in parts.hostname else None
    except UnicodeError:
        raise InputError(f"{what} {text!r} names no valid host") from None
    origin = Origin(parts.scheme, host or parts.hostname, port or _DEFAULT_PORT[parts.scheme])
    return Url(origin, parts.path.rstrip("/"))


def base_url(text: str, *, what: str = "the URL") -> Url:
    """The URL below which ``/v1`` lies; ``/v1`` at its end is taken off. Raises InputError."""
    url = parse_url(text, what=what)
    return Url(url.origin, url.path.removesuffix("/v1"))


def refuse_proxy(url: Url) -> None:
    """Raise InputError when the environment asks for an HTTP proxy on the way to ``url``.

    A proxy would be measured together with the endpoint, and going round it silently would
    measure a way that no user takes. Loopback addresses never go through a proxy.
    """
    origin = url.origin
    if _is_loopback(origin.host):
        return
    proxies = urllib.request.getproxies_environment()
    proxy = proxies.get(origin.scheme) or proxies.get("all")
    if not proxy or urllib.request.proxy_bypass(f"{origin.host}:{origin.port}"):
        return
    variable = f"{origin.scheme}_proxy" if proxies.get(origin.scheme) else "all_proxy"
    raise InputError(
        f"the environment ({variable}) sends requests to {origin} through a proxy, "
        "which a latency measurement must not",
        do=f"add {origin.host} to no_proxy, or unset {variable}",
    )


def auth_headers(environment: Mapping[str, str] | None = None) -> tuple[tuple[str, str], ...]:
    """The Authorization header from ``SPECRACK_API_KEY``; empty when unset. Raises InputError."""
    key = (os.environ if environment is None else environment).get(API_KEY_VARIABLE, "").strip()
    if not key:
        return ()
    if not key.isascii() or not key.isprintable():
        raise InputError(f"{API_KEY_VARIABLE} holds characters that a header cannot")
    return (("Authorization", f"Bearer {key}"),)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _without_secrets(text: str) -> str:
    scheme, mark, rest = text.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"
