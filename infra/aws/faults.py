"""What botocore raises -> one clear line with a remedy.

Nothing of a request is repeated: some services echo signatures and whole canonical requests.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from botocore import exceptions as raised

from infra.errors import EXIT_BAD_INPUT, EXIT_INCONCLUSIVE, SpecrackError

Kind = Literal[
    "credentials",  # none, half, or a profile that is not there
    "expired",  # a token that was good once
    "refused",  # AWS does not know the key, or the signature is wrong
    "clock",  # this machine's clock is off
    "denied",  # known, but not allowed
    "region",  # the region is not enabled, or there is none of that name
    "throttled",
    "unreachable",  # no answer: network, proxy, name service, TLS
    "unavailable",  # AWS answered with a fault of its own
    "answer",  # AWS answered that the request is wrong or the thing is not there
    "local",  # never sent
]

#: Nothing was found out: asking again may help.
UNDECIDED: frozenset[Kind] = frozenset({"throttled", "unreachable", "unavailable"})

_EXPIRED = frozenset(
    {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "CredentialsExpired"}
)
_REFUSED = frozenset(
    {
        "InvalidClientTokenId",
        "UnrecognizedClientException",
        "InvalidAccessKeyId",
        "AuthFailure",
        "SignatureDoesNotMatch",
        "InvalidSignatureException",
        "IncompleteSignature",
        "IncompleteSignatureException",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
    }
)
_CLOCK = frozenset({"RequestTimeTooSkewed", "RequestInTheFuture", "RequestExpired"})
_DENIED = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "UnauthorizedOperation",
        "AuthorizationError",
        "AuthorizationErrorException",
        "NotAuthorized",
        "UnauthorizedException",
        "Forbidden",
        "403",
    }
)
_REGION = frozenset({"OptInRequired", "SubscriptionRequiredException", "RegionDisabledException"})
# Those that botocore itself takes for throttling, and EC2's and the API gateway's.
_THROTTLED = frozenset(
    {
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "RequestThrottledException",
        "RequestThrottled",
        "TooManyRequestsException",
        "ProvisionedThroughputExceededException",
        "TransactionInProgressException",
        "RequestLimitExceeded",
        "BandwidthLimitExceeded",
        "LimitExceededException",
        "SlowDown",
        "PriorRequestNotComplete",
        "EC2ThrottledException",
        "Client.RequestLimitExceeded",
        "429",
    }
)
_DENIAL = re.compile(
    r"(?:User: (?P<who>arn:\S+) is )?not authorized to perform: (?P<action>[a-zA-Z0-9-]+:\w+)"
)
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a call failed. ``code``: AWS's own word for it, or the name of the exception."""

    kind: Kind
    code: str
    what: str
    do: str

    @property
    def undecided(self) -> bool:
        return self.kind in UNDECIDED


class AwsError(SpecrackError):
    """AWS could not be asked, or said no. Exit status 3 when asking again may help, else 2."""

    code = "aws"

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.what, do=fault.do)
        self.fault = fault
        self.exit_status = EXIT_INCONCLUSIVE if fault.undecided else EXIT_BAD_INPUT


@contextlib.contextmanager
def telling(service: str, region: str, *, doing: str = "") -> Iterator[None]:
    """Turn what botocore raises inside into AwsError. ``doing``: what was tried, in words."""
    try:
        yield
    except (raised.BotoCoreError, raised.ClientError) as error:
        raise AwsError(read(error, service=service, region=region, doing=doing)) from error


def code_of(error: BaseException) -> str:
    """AWS's word for what is wrong (``InvalidAMIID.NotFound``), else the exception's name."""
    if isinstance(error, raised.ClientError):
        return " ".join(str(error.response.get("Error", {}).get("Code") or "").split()) or "unknown"
    return type(error).__name__


def read(error: BaseException, *, service: str, region: str, doing: str = "") -> Fault:
    """The fault that ``error`` means."""
    if isinstance(error, raised.ClientError):
        kind, what, do = _answered(error, service, region)
    else:
        kind, what, do = _not_answered(error, service, region)
    return Fault(kind, code_of(error), f"{doing}: {what}" if doing else what, do)


_Reading = tuple[Kind, str, str]


def _answered(error: raised.ClientError, service: str, region: str) -> _Reading:
    code = code_of(error)
    message = _shortened(str(error.response.get("Error", {}).get("Message") or ""))
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0)
    if code in _EXPIRED:
        return (
            "expired",
            "the AWS credentials have expired",
            "sign in again (aws sso login), or fetch new temporary keys",
        )
    if code in _CLOCK or "Signature expired" in message or "Signature not yet current" in message:
        return (
            "clock",
            "AWS finds the request too old or too new: this machine's clock is off",
            "set the clock (timedatectl set-ntp true), then try again",
        )
    if code in _REFUSED:
        return (
            "refused",
            f"AWS does not accept these credentials ({code})",
            "check with: aws sts get-caller-identity; then set the right profile or keys",
        )
    if code in _DENIED or code.endswith(".UnauthorizedOperation"):
        return _denied(message, service, error.operation_name)
    if code in _REGION:
        return (
            "region",
            f"this account may not use {service} in {region} ({code})",
            "enable the region or the service for the account, or choose another region",
        )
    if code in _THROTTLED or status == 429:
        return (
            "throttled",
            f"{service} throttled us ({code}), {_tries(error)} tries",
            "wait a minute and run it again",
        )
    if status >= 500:
        return (
            "unavailable",
            f"{service} in {region} answered with a fault of its own ({code})",
            "run it again; see the AWS health dashboard when it stays",
        )
    return "answer", f"{service} {error.operation_name}: {code}: {message}".rstrip(": "), ""


def _denied(message: str, service: str, operation: str) -> _Reading:
    found = _DENIAL.search(message)
    action = found["action"] if found else f"{service}:{operation}"
    who = found["who"] if found and found["who"] else "this identity"
    why = ""
    if "explicit deny" in message:
        # Organization-wide policies cannot be mended in the account.
        where = "a service control policy" if "service control" in message else "a policy"
        why = f" (explicitly denied by {where})"
    return "denied", f"{who} may not {action}{why}", f"allow {action}; docs/preflight.md"


def _not_answered(error: BaseException, service: str, region: str) -> _Reading:
    for kinds, kind, what, do in _LOCAL:
        if isinstance(error, kinds):
            # Our own text and fields of the exception that hold no request.
            fields = getattr(error, "kwargs", {})
            known = {"service": service, "region": region} | {
                name: str(value) for name, value in fields.items() if name in _SHOWN
            }
            return kind, what.format_map(_Known(known)), do.format_map(_Known(known))
    return "local", f"{service}: {_shortened(str(error))}", ""


class _Known(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "?"


_SHOWN = frozenset({"provider", "cred_var", "profile", "path", "endpoint_url", "proxy_url"})
_SIGN_IN = "sign in: aws configure, aws sso login, or AWS_PROFILE; docs/preflight.md"
_Row = tuple[tuple[type[BaseException], ...], Kind, str, str]
_LOCAL: tuple[_Row, ...] = (
    (
        (raised.NoCredentialsError, raised.NoAuthTokenError),
        "credentials",
        "no AWS credentials found",
        _SIGN_IN,
    ),
    (
        (raised.PartialCredentialsError,),
        "credentials",
        "AWS credentials from {provider} are not complete: {cred_var} is missing",
        "set {cred_var} as well",
    ),
    (
        (raised.ProfileNotFound,),
        "credentials",
        "there is no AWS profile {profile}",
        "see aws configure list-profiles, and set AWS_PROFILE",
    ),
    (
        (raised.ConfigParseError, raised.ConfigNotFound),
        "credentials",
        "the AWS configuration {path} cannot be read",
        "mend the file, or point AWS_CONFIG_FILE at another",
    ),
    (
        (
            raised.UnauthorizedSSOTokenError,
            raised.SSOTokenLoadError,
            raised.TokenRetrievalError,
            raised.SSOError,
        ),
        "expired",
        "the AWS sign-in (SSO) is missing or has expired",
        "sign in again: aws sso login",
    ),
    (
        (raised.LoginError, raised.LoginRefreshRequired, raised.LoginTokenLoadError),
        "expired",
        "the AWS sign-in is missing or has expired",
        "sign in again: aws login",
    ),
    (
        (raised.CredentialRetrievalError, raised.MetadataRetrievalError),
        "credentials",
        "AWS credentials could not be fetched from {provider}",
        "check that source, or set AWS_PROFILE to another",
    ),
    (
        (raised.ProxyConnectionError,),
        "unreachable",
        "the proxy for {service} in {region} does not answer",
        "check HTTPS_PROXY and NO_PROXY",
    ),
    (
        (raised.SSLError,),
        "unreachable",
        "no trusted TLS connection to {service} in {region}",
        "where a proxy re-signs traffic, set AWS_CA_BUNDLE to its certificate",
    ),
    (
        (raised.ConnectTimeoutError, raised.EndpointConnectionError),
        "unreachable",
        "{service} in {region} cannot be reached ({endpoint_url})",
        "check the network, the proxy and that the region exists",
    ),
    (
        (
            raised.ReadTimeoutError,
            raised.ConnectionClosedError,
            raised.IncompleteReadError,
            raised.HTTPClientError,
        ),
        "unreachable",
        "{service} in {region} did not answer in time",
        "check the network, then run it again",
    ),
    (
        (raised.InvalidRegionError, raised.NoRegionError, raised.UnknownRegionError),
        "region",
        "{region} is no region of AWS",
        "write one such as us-east-1 in site: aws/<region>",
    ),
)


def _tries(error: raised.ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("RetryAttempts") or 0) + 1


def _shortened(message: str) -> str:
    """One line without what only AWS can read."""
    message = " ".join(message.split())
    message = message.split(" Encoded authorization failure message")[0]
    return message if len(message) <= _LONGEST else message[:_LONGEST] + " ..."
