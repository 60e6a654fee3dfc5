"""Every error a user can meet, drawn once.

Each error says what is wrong, where, and what to do instead, on one line, and carries a stable
code and an exit status:

    SpecrackError                 2
    ├── InputError                2   a file, flag or environment variable is wrong
    │   └── DeploymentError       2   one or more problems in a deployment file, all at once
    ├── ToolError                 2   a program we need is missing or too old
    ├── UnsupportedError          2   engine, method and version do not go together
    ├── ConfigureError            1   a host could not be configured
    ├── AwsError                  2 or 3  AWS could not be asked, or said no (infra/aws/faults.py)
    └── EndpointError             3   the served endpoint could not be measured

Exit statuses everywhere: 0 good, 1 failed, 2 bad input, 3 inconclusive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_INCONCLUSIVE = 3


class SpecrackError(Exception):
    """Base of all errors that a user may see.

    ``message`` is one line: what is wrong and where. ``do`` is the remedy, one line, or empty.
    """

    code = "error"
    exit_status = EXIT_BAD_INPUT

    def __init__(self, message: str, *, do: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.do = do

    def __str__(self) -> str:
        return f"{self.message} ({self.do})" if self.do else self.message

    @property
    def lines(self) -> tuple[str, ...]:
        """What to print, one line a fault."""
        return (str(self),)


class InputError(SpecrackError):
    """A file, a flag or an environment variable holds something we cannot use."""

    code = "bad-input"


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault in a file: ``path:line: key: what``."""

    path: str
    line: int | None
    key: str
    what: str

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{place}: {self.key}: {self.what}" if self.key else f"{place}: {self.what}"


class DeploymentError(InputError):
    """All faults found in one or more deployment files."""

    code = "bad-deployment"

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.lines))

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(str(problem) for problem in self.problems)


class ToolError(SpecrackError):
    """A program that we start (Node, Terraform, cdktf) is missing or too old."""

    code = "missing-tool"


class UnsupportedError(SpecrackError):
    """Engine, speculation method and version do not go together."""

    code = "unsupported"


class ConfigureError(SpecrackError):
    """A host could not be brought to its launch plan."""

    code = "configure-failed"
    exit_status = EXIT_FAILED


class EndpointError(SpecrackError):
    """An endpoint could not be reached or did not speak the protocol, so nothing was measured."""

    code = "endpoint"
    exit_status = EXIT_INCONCLUSIVE
