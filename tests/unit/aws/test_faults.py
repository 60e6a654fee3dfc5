"""Every fault is one line with a remedy, and repeats nothing secret."""

from __future__ import annotations

from typing import Any

import pytest
from botocore import exceptions as raised
from hypothesis import given
from hypothesis import strategies as st

from infra.aws.faults import AwsError, Fault, Kind, code_of, read, telling


def answered(code: str, message: str = "", status: int = 400) -> raised.ClientError:
    return raised.ClientError(
        {
            "Error": {"Code": code, "Message": message},
            "ResponseMetadata": {"HTTPStatusCode": status, "RetryAttempts": 2},
        },
        "DescribeInstances",
    )


def fault(error: BaseException) -> Fault:
    return read(error, service="ec2", region="us-east-1")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (answered("ExpiredToken"), "expired"),
        (answered("ExpiredTokenException"), "expired"),
        (answered("InvalidClientTokenId", status=403), "refused"),
        (answered("UnrecognizedClientException"), "refused"),
        (answered("AuthFailure", status=401), "refused"),
        (answered("SignatureDoesNotMatch", "Signature expired: 20261204T1 is now"), "clock"),
        (answered("SignatureDoesNotMatch", "The request signature we calculated"), "refused"),
        (answered("RequestTimeTooSkewed"), "clock"),
        (answered("AccessDenied", status=403), "denied"),
        (answered("UnauthorizedOperation", status=403), "denied"),
        (answered("AccessDeniedException"), "denied"),
        (answered("403", status=403), "denied"),
        (answered("OptInRequired", status=401), "region"),
        (answered("Throttling"), "throttled"),
        (answered("RequestLimitExceeded", status=503), "throttled"),
        (answered("TooManyRequestsException", status=429), "throttled"),
        (answered("SomethingNew", status=429), "throttled"),
        (answered("InternalError", status=500), "unavailable"),
        (answered("ServiceUnavailable", status=503), "unavailable"),
        (answered("InvalidAMIID.NotFound"), "answer"),
        (raised.NoCredentialsError(), "credentials"),
        (raised.PartialCredentialsError(provider="env", cred_var="X"), "credentials"),
        (raised.ProfileNotFound(profile="x"), "credentials"),
        (raised.ConfigParseError(path="x", error="y"), "credentials"),
        (raised.CredentialRetrievalError(provider="sso", error_msg="z"), "credentials"),
        (raised.UnauthorizedSSOTokenError(), "expired"),
        (raised.SSOTokenLoadError(error_msg="x"), "expired"),
        (raised.TokenRetrievalError(provider="sso", error_msg="x"), "expired"),
        (raised.LoginRefreshRequired(), "expired"),
        (raised.EndpointConnectionError(endpoint_url="http://x"), "unreachable"),
        (raised.ConnectTimeoutError(endpoint_url="http://x"), "unreachable"),
        (raised.ReadTimeoutError(endpoint_url="http://x"), "unreachable"),
        (raised.ProxyConnectionError(proxy_url="http://p"), "unreachable"),
        (raised.SSLError(endpoint_url="http://x", error="y"), "unreachable"),
        (raised.ConnectionClosedError(endpoint_url="http://x"), "unreachable"),
        (raised.InvalidRegionError(region_name="x"), "region"),
        (raised.ParamValidationError(report="x"), "local"),
    ],
    ids=lambda value: value if isinstance(value, str) else code_of(value),
)
def test_what_botocore_raises_is_told_apart(error: BaseException, kind: Kind) -> None:
    found = fault(error)
    assert found.kind == kind
    assert "\n" not in found.what + found.do
    assert "?" not in found.what + found.do
    assert found.do or kind in ("answer", "local")


def test_a_denial_names_who_and_what() -> None:
    found = fault(
        answered(
            "UnauthorizedOperation",
            "You are not authorized to perform this operation. User: "
            "arn:aws:sts::1:assumed-role/a/b is not authorized to perform: ec2:RunInstances on "
            "resource: arn:aws:ec2:x because no identity-based policy allows the "
            "ec2:RunInstances action. Encoded authorization "
            "failure message: qqqqqqqqqqqqqqqqqq",
            403,
        )
    )
    assert found.what == "arn:aws:sts::1:assumed-role/a/b may not ec2:RunInstances"
    assert found.do == "allow ec2:RunInstances; docs/preflight.md"


def test_a_denial_by_the_organization_says_so() -> None:
    found = fault(
        answered(
            "AccessDenied",
            "User: arn:aws:iam::1:user/a is not authorized to perform: ec2:RunInstances on "
            "resource: x with an explicit deny in a service control policy",
            403,
        )
    )
    assert "explicitly denied by a service control policy" in found.what


def test_a_denial_without_words_names_the_call() -> None:
    assert fault(answered("UnauthorizedOperation")).what == (
        "this identity may not ec2:DescribeInstances"
    )


def test_undecided_faults_end_with_3_and_the_others_with_2() -> None:
    assert AwsError(fault(answered("Throttling"))).exit_status == 3
    assert AwsError(fault(raised.ReadTimeoutError(endpoint_url="x"))).exit_status == 3
    assert AwsError(fault(answered("AccessDenied"))).exit_status == 2
    assert AwsError(fault(raised.NoCredentialsError())).exit_status == 2


def test_telling_says_what_was_tried() -> None:
    with (
        pytest.raises(AwsError, match="making the bucket: no AWS credentials found"),
        telling("s3", "us-east-1", doing="making the bucket"),
    ):
        raise raised.NoCredentialsError


@given(code=st.text(max_size=40), message=st.text(max_size=2000), status=st.integers(200, 599))
def test_any_answer_becomes_one_short_line(code: str, message: str, status: int) -> None:
    what = fault(answered(code, message, status)).what
    assert len(what.splitlines()) == 1
    assert len(what) < 600


@given(secret=st.from_regex(r"[A-Za-z0-9+/]{40}", fullmatch=True))
def test_what_only_aws_can_read_is_left_out(secret: str) -> None:
    message = f"No. Encoded authorization failure message: {secret}"
    for code in ("UnauthorizedOperation", "InvalidParameterValue"):
        assert secret not in fault(answered(code, message)).what
    signature: dict[str, Any] = {"code": "SignatureDoesNotMatch"}
    assert secret not in fault(answered(signature["code"], f"The string was {secret}")).what
