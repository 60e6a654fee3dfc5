"""Terraform's pointer to a backend: kept while it is right, dropped when it is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from infra.spec.model import Deployment
from stacks.app import drop_stale_backend
from tests.unit.stacks.aws.conftest import BASE, deployment

S3 = {"bucket": "acme-state", "region": "us-east-1", "key": "specrack/chat-prototype.tfstate"}


def project(root: Path, backend: dict[str, str] | None) -> Path:
    """A project whose Terraform state is in ``backend``; the folder of its stacks."""
    context = {"specrack": {"backend": backend}} if backend else {}
    (root / "cdktf.json").write_text(json.dumps({"context": context}))
    return root / "cdktf.out"


def pointer(outdir: Path, content: Any) -> Path:
    path = outdir / "stacks" / "chat" / ".terraform" / "terraform.tfstate"
    path.parent.mkdir(parents=True)
    (path.parent / "providers").mkdir()
    path.write_text(content if isinstance(content, str) else json.dumps({"backend": content}))
    return path


def local(root: Path, of: Deployment) -> dict[str, Any]:
    path = root / ".specrack" / of.stack_key / "terraform.tfstate"
    return {"type": "local", "config": {"path": str(path)}}


BUCKET = {"bucket": "acme-state", "region": "us-east-1"}


@pytest.mark.parametrize(
    ("backend", "there", "kept"),
    [
        (None, "local", True),
        (BUCKET, {"type": "s3", "config": S3}, True),
        (BUCKET, "local", False),
        (None, {"type": "s3", "config": S3}, False),
        (BUCKET, {"type": "s3", "config": S3 | {"bucket": "other"}}, False),
        (BUCKET, {"type": "s3", "config": S3 | {"key": "specrack/chat-scaled.tfstate"}}, False),
        (BUCKET, {"type": "s3", "config": S3 | {"region": "eu-west-1"}}, False),
        (None, {"type": "local", "config": {"path": "/elsewhere/terraform.tfstate"}}, False),
        (None, "{ never finished", False),
        (None, {}, False),
    ],
)
def test_a_pointer_to_another_backend_is_dropped(
    backend: dict[str, str] | None, there: Any, kept: bool, tmp_path: Path
) -> None:
    of = deployment(BASE)
    outdir = project(tmp_path, backend)
    path = pointer(outdir, local(tmp_path, of) if there == "local" else there)
    drop_stale_backend(outdir, [of], tmp_path)
    assert path.exists() is kept
    assert (path.parent / "providers").exists()


def test_no_pointer_is_no_trouble(tmp_path: Path) -> None:
    drop_stale_backend(project(tmp_path, None), [deployment(BASE)], tmp_path)
