"""A step of a deploy: a ``terraform_data`` that runs one of our commands on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from constructs import Construct

from stacks.engine import cdk

#: Found through PATH, where the ``cdktf`` command puts the project's interpreter first.
PYTHON = "python"


def command(name: str, *arguments: str) -> str:
    """The shell line of a step. Arguments are deployment names and the like: no quoting needed."""
    return " ".join((PYTHON, "-m", "infra", name, *arguments))


def on_create(line: str, *, root: str, environment: Mapping[str, str]) -> cdk.LocalExecProvisioner:
    """Run ``line`` when the step is created or replaced; its failure fails the apply."""
    return cdk.LocalExecProvisioner(
        type="local-exec", command=line, working_dir=root, environment=dict(environment)
    )


def on_destroy(line: str, *, root: str, environment: Mapping[str, str]) -> cdk.LocalExecProvisioner:
    """Run ``line`` before the step is destroyed."""
    return cdk.LocalExecProvisioner(
        type="local-exec",
        when="destroy",
        command=line,
        working_dir=root,
        environment=dict(environment),
    )


class Step(cdk.DataResource):
    """``terraform_data`` with provisioners; replaced when a trigger changes."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        after: Sequence[cdk.ITerraformDependable] = (),
        triggers: Mapping[str, str] | None = None,
        record: Mapping[str, str] | None = None,
        run: Sequence[cdk.LocalExecProvisioner],
    ) -> None:
        super().__init__(
            scope,
            name,
            depends_on=list(after) or None,
            triggers_replace=dict(triggers) if triggers else None,
            input=dict(record) if record else None,
            provisioners=list(run),
        )
