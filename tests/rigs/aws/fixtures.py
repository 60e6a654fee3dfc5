"""pytest fixtures. A test module (or a conftest) imports them: ``from ... import aws``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rigs.aws.rig import AwsRig


@pytest.fixture(scope="session")
def aws_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsRig]:
    """One server for all tests of the session."""
    rig = AwsRig.start(tmp_path_factory.mktemp("aws"))
    yield rig
    rig.stop()


@pytest.fixture
def aws(aws_server: AwsRig) -> AwsRig:
    """An AWS with nothing in it, for one test."""
    aws_server.reset()
    return aws_server


@pytest.fixture
def aws_env(aws: AwsRig, monkeypatch: pytest.MonkeyPatch) -> AwsRig:
    """``aws``, and this process goes there too."""
    for key, value in aws.env.items():
        monkeypatch.setenv(key, value)
    return aws
