"""Clients of AWS services: bounded in time, polite in retries, safe to make from any thread.

``SPECRACK_AWS_ENDPOINT`` sends every service to one address: a test server, or a private endpoint.
"""

from __future__ import annotations

import importlib.metadata
import os
import threading
from typing import Any

import boto3
import botocore.config
import botocore.session
from botocore.exceptions import BotoCoreError

from infra.aws.faults import AwsError, read

ENDPOINT = "SPECRACK_AWS_ENDPOINT"

#: Seconds. AWS answers these calls in well under one; the longest known are Pricing's, with two.
CONNECT_S = 3.0
READ_S = 10.0
#: The first try and the retries together. Adaptive retries slow down by themselves when throttled.
ATTEMPTS = 3
#: On a machine that is not in EC2 nobody answers at the metadata address; botocore asks there last.
METADATA_S = 1

_lock = threading.Lock()
_sessions: dict[str | None, boto3.session.Session] = {}


def client(
    service: str,
    region: str,
    *,
    profile: str | None = None,
    read_s: float = READ_S,
    attempts: int = ATTEMPTS,
) -> Any:
    """A boto3 client of ``service`` in ``region``.

    Credentials come from where boto3 looks for them, or from ``profile``. No request is made,
    except that credentials may be fetched at the first use. A client may be shared by threads.
    ``read_s``: seconds to wait for an answer; ``attempts``: tries in all.

    Typed as Any: boto3 makes its methods at run time. Wrap calls in ``infra.aws.faults.telling``,
    which turns what botocore raises into one clear line.

    Raises AwsError for a profile or a configuration that cannot be used.
    """
    config = botocore.config.Config(
        connect_timeout=CONNECT_S,
        read_timeout=read_s,
        retries={"mode": "adaptive", "total_max_attempts": attempts},
        user_agent_extra=f"specrack/{_version()}",
        max_pool_connections=16,
    )
    try:
        # boto3 sessions are not thread-safe while they make clients; clients are.
        with _lock:
            return _session(profile).client(
                service, region_name=region, endpoint_url=endpoint(), config=config
            )
    except (BotoCoreError, ValueError) as error:
        raise AwsError(read(error, service=service, region=region)) from None


def endpoint() -> str | None:
    """Where all services are instead of AWS, or None."""
    return os.environ.get(ENDPOINT) or None


def forget() -> None:
    """Read credentials and profiles anew at the next client."""
    with _lock:
        _sessions.clear()


def _session(profile: str | None) -> boto3.session.Session:
    if profile not in _sessions:
        core = botocore.session.Session(profile=profile)
        if "AWS_METADATA_SERVICE_TIMEOUT" not in os.environ:
            core.set_config_variable("metadata_service_timeout", METADATA_S)
        if "AWS_METADATA_SERVICE_NUM_ATTEMPTS" not in os.environ:
            core.set_config_variable("metadata_service_num_attempts", 1)
        _sessions[profile] = boto3.session.Session(botocore_session=core, profile_name=profile)
    return _sessions[profile]


def _version() -> str:
    try:
        return importlib.metadata.version("specrack")
    except importlib.metadata.PackageNotFoundError:
        return "0"
