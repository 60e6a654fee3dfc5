"""A cluster's token is a signed request for our own identity, good for this cluster alone."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import botocore.session
import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest

from infra.aws import eks_token
from infra.aws.eks_token import credential, main, token

CLUSTER, REGION = "chat-scaled-cluster", "eu-west-1"


def url_of(text: str) -> str:
    assert text.startswith("k8s-aws-v1.")
    encoded = text.removeprefix("k8s-aws-v1.")
    assert "=" not in encoded
    return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()


def test_the_token_is_a_presigned_request_of_sts() -> None:
    url = urlsplit(url_of(token(CLUSTER, REGION)))
    query = {name: values[0] for name, values in parse_qs(url.query).items()}
    assert (url.scheme, url.netloc) == ("https", "sts.eu-west-1.amazonaws.com")
    assert query["Action"] == "GetCallerIdentity"
    assert query["X-Amz-SignedHeaders"] == "host;x-k8s-aws-id"
    assert query["X-Amz-Expires"] == "60"
    assert query["X-Amz-Credential"].startswith("AKIAEXAMPLE/")
    assert query["X-Amz-Credential"].endswith("/eu-west-1/sts/aws4_request")
    assert "not-a-secret" not in url.query


@pytest.mark.parametrize(("named", "same"), [(CLUSTER, True), ("another", False)])
def test_the_signature_holds_for_this_cluster_only(named: str, same: bool) -> None:
    """Signed anew as the server would see it, with the header that names the cluster."""
    url = url_of(token(CLUSTER, REGION))
    query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
    signature = query.pop("X-Amz-Signature")
    request = AWSRequest("GET", url.partition("?")[0], headers={"x-k8s-aws-id": named})
    request.params = {"Action": query["Action"], "Version": query["Version"]}
    request.context["timestamp"] = query["X-Amz-Date"]
    signer = SigV4QueryAuth(
        botocore.session.get_session().get_credentials(), "sts", REGION, expires=60
    )
    signer._modify_request_before_signing(request)
    canonical = signer.canonical_request(request)
    again = signer.signature(signer.string_to_sign(request, canonical), request)
    assert (again == signature) is same


def test_a_temporary_token_goes_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "temporary")
    url = url_of(token(CLUSTER, REGION))
    assert "X-Amz-Security-Token=temporary" in url


def test_the_credential_is_what_kubernetes_reads() -> None:
    now = datetime(2026, 12, 4, 12, 0, tzinfo=UTC)
    value = credential(CLUSTER, REGION, now=now)
    assert value["kind"] == "ExecCredential"
    assert value["apiVersion"] == "client.authentication.k8s.io/v1beta1"
    assert value["status"]["expirationTimestamp"] == "2026-12-04T12:14:00Z"


@pytest.mark.parametrize(
    ("asked", "spoken"),
    [
        ('{"apiVersion": "client.authentication.k8s.io/v1"}', "v1"),
        ('{"apiVersion": "client.authentication.k8s.io/v1beta1"}', "v1beta1"),
        ('{"apiVersion": "client.authentication.k8s.io/v9"}', "v1beta1"),
        ("[]", "v1beta1"),
        ("nonsense", "v1beta1"),
    ],
)
def test_it_answers_in_the_version_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, asked: str, spoken: str
) -> None:
    monkeypatch.setenv("KUBERNETES_EXEC_INFO", asked)
    assert credential(CLUSTER, REGION)["apiVersion"].endswith(f"/{spoken}")


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--region", REGION, "--cluster", CLUSTER]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["status"]["token"].startswith(eks_token.PREFIX)


def test_without_credentials_it_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert main(["--region", REGION, "--cluster", CLUSTER]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(
        f"error: signing for cluster {CLUSTER}: no AWS credentials found"
    )
