"""The key pair with which a deployment's machines are reached: one a stack, made here, kept here.

Machines never hold it: EC2 Instance Connect shows the public half to the machine for a minute,
before each connection, to whoever IAM allows.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from infra.errors import InputError, ToolError
from infra.files import locked, unwritable

_KEY = "id_ed25519"


@dataclass(frozen=True, slots=True)
class SshFolder:
    """``.specrack/<stack>/ssh``: the key, and the host keys that were seen."""

    path: Path

    @property
    def key(self) -> Path:
        return self.path / _KEY

    @property
    def known_hosts(self) -> Path:
        return self.path / "known_hosts"

    def public_key(self) -> str:
        """The public half, one line; the pair is made on first use.

        Raises ToolError without ``ssh-keygen``, InputError when the folder cannot be written.
        """
        if not self._pair_is_there():
            self._make()
        return self._public.read_text(encoding="ascii").strip()

    @property
    def _public(self) -> Path:
        return self.path / f"{_KEY}.pub"

    def _pair_is_there(self) -> bool:
        return self.key.is_file() and self._public.is_file()

    def _make(self) -> None:
        if shutil.which("ssh-keygen") is None:
            raise ToolError("ssh-keygen is not installed", do="install OpenSSH's client")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.path.chmod(0o700)
        except OSError as error:
            raise unwritable(self.path, error) from error
        with locked(self.path / ".lock", wait_s=20.0, what="making an SSH key"):
            if self._pair_is_there():
                return
            # Beside, then moved in: a pair is whole or not there; the private half comes last.
            with tempfile.TemporaryDirectory(dir=self.path, prefix=".new") as made:
                new = Path(made) / _KEY
                result = subprocess.run(
                    ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "specrack", "-f", new],
                    capture_output=True,
                    text=True,
                    timeout=30,
                    check=False,
                )
                if result.returncode != 0:
                    raise InputError(f"{self.path}: no key could be made: {result.stderr.strip()}")
                new.chmod(0o600)
                os.replace(f"{new}.pub", self._public)  # noqa: PTH105
                os.replace(new, self.key)  # noqa: PTH105
