"""A token for a cluster's API server, as ``aws eks get-token`` gives: kubectl and Ansible run this.

::

    python -m infra.aws.eks_token --region us-east-1 --cluster chat-scaled-cluster

The token is a signed request for our own identity, bound to the cluster's name; the API server
sends it to STS to learn who we are.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from infra.aws.faults import telling
from infra.aws.session import client
from infra.errors import SpecrackError

PREFIX = "k8s-aws-v1."
CLUSTER_HEADER = "x-k8s-aws-id"
#: Seconds that the signed request may be started with; the API server takes no more than 900 for
#: the token as a whole, of which a minute is left for clocks that differ.
SIGNED_FOR_S = 60
LASTS = timedelta(minutes=14)
_VERSIONS = ("client.authentication.k8s.io/v1beta1", "client.authentication.k8s.io/v1")


def token(cluster: str, region: str) -> str:
    """The bearer token for ``cluster``. Raises AwsError without credentials."""
    sts = client("sts", region)

    def name_the_cluster(request: Any, **_: Any) -> None:
        request.headers[CLUSTER_HEADER] = cluster

    sts.meta.events.register("before-sign.sts.GetCallerIdentity", name_the_cluster)
    with telling("sts", region, doing=f"signing for cluster {cluster}"):
        url: str = sts.generate_presigned_url(
            "get_caller_identity", ExpiresIn=SIGNED_FOR_S, HttpMethod="GET"
        )
    return PREFIX + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


def credential(cluster: str, region: str, *, now: datetime | None = None) -> dict[str, Any]:
    """The ExecCredential that Kubernetes clients read. Raises AwsError."""
    until = (now or datetime.now(UTC)) + LASTS
    return {
        "kind": "ExecCredential",
        "apiVersion": _api_version(os.environ.get("KUBERNETES_EXEC_INFO", "")),
        "spec": {},
        "status": {
            "expirationTimestamp": until.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "token": token(cluster, region),
        },
    }


def _api_version(asked: str) -> str:
    """The version that the client says it speaks."""
    try:
        version = json.loads(asked).get("apiVersion")
    except (ValueError, AttributeError):
        return _VERSIONS[0]
    return version if version in _VERSIONS else _VERSIONS[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of ``python -m infra.aws.eks_token``."""
    parser = argparse.ArgumentParser(prog="python -m infra.aws.eks_token", allow_abbrev=False)
    parser.add_argument("--region", required=True)
    parser.add_argument("--cluster", required=True)
    asked = parser.parse_args(arguments)
    try:
        print(json.dumps(credential(asked.cluster, asked.region)))
    except SpecrackError as error:
        for line in error.lines:
            print(f"error: {line}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
