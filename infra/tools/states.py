"""A stack's Terraform state and lock, wherever they are kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from infra import state_lock
from infra.errors import InputError
from infra.paths import StatePaths
from infra.state_backend import Backend
from infra.state_lock import Lock


@dataclass(frozen=True, slots=True)
class State:
    """What a state says about itself, and everything in it."""

    lineage: str
    serial: int
    content: Mapping[str, Any]

    @property
    def resources(self) -> list[Mapping[str, Any]]:
        return list(self.content.get("resources") or [])

    def addresses(self) -> set[str]:
        """``aws_vpc.network`` of everything managed that has an instance."""
        return {
            f"{one['type']}.{one['name']}"
            for one in self.resources
            if one.get("mode") == "managed" and one.get("instances")
        }


def parse(text: str, where: str) -> State:
    """A state from its JSON. Raises InputError for what is none."""
    try:
        content = json.loads(text)
        return State(str(content["lineage"]), int(content["serial"]), content)
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"{where}: this is no Terraform state", do="restore it from a backup beside it"
        ) from None


@dataclass(frozen=True, slots=True)
class Store:
    """The state of one stack."""

    backend: Backend
    paths: StatePaths

    @property
    def place(self) -> str:
        if self.backend.kind == "local":
            return str(self.paths.terraform_state)
        return f"s3://{self.backend.bucket}/{self.backend.key_of(self.paths.stack_key)}"

    def read(self) -> State | None:
        """The state, or None when there is none. Raises InputError, AwsError."""
        if self.backend.kind == "local":
            try:
                text: str | None = self.paths.terraform_state.read_text(encoding="utf-8")
            except FileNotFoundError:
                return None
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(f"{self.place}: cannot be read: {error}") from None
        else:
            from infra.aws import backend

            text = backend.read_state(self.backend, self.paths.stack_key)
        # Terraform makes an empty file when it locks a state that is not there yet.
        return parse(text, self.place) if text and text.strip() else None

    def lock(self) -> tuple[Lock, state_lock.Owner, int | None] | None:
        """The lock, whether its owner lives, and its process; None when the state is free."""
        if self.backend.kind == "local":
            held = state_lock.local(self.paths.terraform_state)
            return None if held is None else (held[0], "alive", held[1])
        from infra.aws import backend

        lock = backend.read_lock(self.backend, self.paths.stack_key)
        return None if lock is None else (lock, *state_lock.owner(lock))


def block(backend: Backend, paths: StatePaths, endpoint: str | None) -> dict[str, Any]:
    """The ``terraform.backend`` of a stack, as its synth writes it."""
    if backend.kind == "local":
        return {"local": {"path": str(paths.terraform_state)}}
    settings: dict[str, Any] = {
        "bucket": backend.bucket,
        "key": backend.key_of(paths.stack_key),
        "region": backend.region,
        "encrypt": True,
        "use_lockfile": True,
    }
    if backend.kms_key:
        settings["kms_key_id"] = backend.kms_key
    if endpoint:
        settings |= {
            "endpoints": {"s3": endpoint, "sts": endpoint, "iam": endpoint},
            "use_path_style": True,
            "skip_credentials_validation": True,
            "skip_metadata_api_check": True,
            "skip_requesting_account_id": True,
            "skip_region_validation": True,
        }
    return {"s3": settings}
