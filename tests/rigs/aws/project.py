"""A Specrack project with deployments on AWS, in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.rigs.aws.images import IMAGE_DATE, images
from tests.rigs.aws.rig import REGION, ROOT, AwsRig

BIN = Path(sys.executable).parent
LINKED = ("node_modules", "playbooks", "models")

PROTOTYPE: dict[str, Any] = {
    "name": "chat",
    "tier": "prototype",
    "site": f"aws/{REGION}",
    "model": {
        "target": "meta-llama/Llama-3.1-8B-Instruct",
        "draft": "meta-llama/Llama-3.2-1B-Instruct",
        "max_model_len": 8192,
    },
    "serving": {"engine": "vllm", "speculation": {"method": "draft_model", "draft_tokens": 5}},
    "load": {"sessions": 20, "prompt_tokens": 1024, "output_tokens": 256, "think_s": 10},
    "sla": {"ttft_p95_ms": 400},
    "budget": {"usd_per_month": 3500},
    "fleet": {"schedule": "weekdays 08-20 Europe/Vienna"},
    "aws": {
        "network": {"clients": ["10.20.0.0/16"]},
        "weights": {"bucket": "acme-models", "prefix": "llama/"},
        "hub_secret": f"arn:aws:secretsmanager:{REGION}:123456789012:secret:hub-AbCdEf",
        "alarm_emails": ["ops@example.com"],
    },
    "tags": {"team": "search"},
}
SCALED: dict[str, Any] = PROTOTYPE | {
    "name": "answers",
    "tier": "scaled",
    "model": {
        "target": "meta-llama/Llama-3.1-70B-Instruct",
        "draft": "meta-llama/Llama-3.1-8B-Instruct",
        "max_model_len": 8192,
    },
    "serving": {"engine": "trtllm", "speculation": {"method": "draft_model", "draft_tokens": 5}},
    "budget": {"usd_per_month": 50000},
    "fleet": {"nodes": {"min": 2, "max": 4}},
    "aws": PROTOTYPE["aws"] | {"network": {"operators": ["203.0.113.7/32"]}},
}
IMAGE = next(iter(images()))
LOCKS: dict[str, Any] = {
    "chat": {
        "version": 1,
        "aws": {
            "region": REGION,
            "image": {"id": IMAGE, "parameter": "/aws/service/x", "at": "2026-12-04"},
        },
    },
    "answers": {
        "version": 1,
        "aws": {
            "region": REGION,
            "kubernetes": {
                "version": "1.33",
                "release_version": f"1.33.5-{IMAGE_DATE}",
                "parameter": "/aws/service/y",
                "at": "2026-12-04",
            },
        },
    },
}


@dataclass
class AwsProject:
    """A project whose AWS is a rig's. ``layers``: what is deployed (``SPECRACK_LAYERS``)."""

    root: Path
    rig: AwsRig
    layers: str = "hosts"
    more: dict[str, str] = field(default_factory=dict)

    @classmethod
    def make(cls, root: Path, rig: AwsRig, *deployments: Mapping[str, Any]) -> AwsProject:
        """Write it. Models and playbooks are the shipped ones, linked."""
        root.mkdir(parents=True, exist_ok=True)
        for name in LINKED:
            if not (root / name).exists():
                (root / name).symlink_to(ROOT / name)
        (root / "cdktf.json").write_text((ROOT / "cdktf.json").read_text())
        (root / "deployments").mkdir(exist_ok=True)
        yaml = YAML()
        for one in deployments or (PROTOTYPE,):
            with (root / "deployments" / f"{one['name']}.yaml").open("w") as stream:
                yaml.dump(dict(one), stream)
            if lock := LOCKS.get(one["name"]):
                with (root / "deployments" / f"{one['name']}.lock.yaml").open("w") as stream:
                    yaml.dump(lock, stream)
        return cls(root, rig)

    @property
    def env(self) -> dict[str, str]:
        """What a command in the project sees: nothing of whoever runs the tests."""
        clean = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("SPECRACK_", "TF_", "AWS_"))
        }
        kept = {
            key: os.environ[key]
            for key in ("SPECRACK_TF_MIRROR", "SPECRACK_TERRAFORM", "SPECRACK_CDK")
            if key in os.environ
        }
        return clean | kept | self.rig.env | {"SPECRACK_LAYERS": self.layers} | self.more

    def run(
        self, *command: str, env: Mapping[str, str] | None = None, timeout_s: float = 300
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of the project's environment to its end."""
        return subprocess.run(
            [str(BIN / command[0]), *command[1:]],
            cwd=self.root,
            env=self.env | dict(env or {}),
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
        )

    def start(
        self, *command: str, log: Path, env: Mapping[str, str] | None = None, **more: Any
    ) -> subprocess.Popen[bytes]:
        """Start one in a process group of its own; its output goes to ``log``."""
        with log.open("ab") as stream:
            return subprocess.Popen(
                [str(BIN / command[0]), *command[1:]],
                cwd=self.root,
                env=self.env | dict(env or {}),
                stdout=stream,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                **more,
            )

    def deploy(self, name: str = "chat", **more: Any) -> subprocess.CompletedProcess[str]:
        return self.run("cdktf", "deploy", name, "--auto-approve", **more)

    def destroy(self, name: str = "chat", **more: Any) -> subprocess.CompletedProcess[str]:
        return self.run("cdktf", "destroy", name, "--auto-approve", **more)

    def base(self, stack_key: str = "chat-prototype") -> Path:
        return self.root / ".specrack" / stack_key
