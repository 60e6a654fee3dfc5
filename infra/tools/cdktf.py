"""The ``cdktf`` command of a Specrack project.

It is the real cdktf-cli, called with the Node.js and the Terraform that were found, after the
deployment files were checked, and believed only when the last step of the deploy says so too.
``make setup`` writes it as ``.venv/bin/cdktf``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.errors import EXIT_FAILED, InputError, SpecrackError, ToolError
from infra.files import locked, read_json
from infra.paths import StatePaths, find_root
from infra.process import die_with_parent
from infra.spec.model import Deployment
from infra.tools import node, outcome, terraform

#: Commands that run the app; with these the deployment files are checked first.
APP_COMMANDS = frozenset({"deploy", "apply", "diff", "plan", "destroy", "synth", "synthesize"})
CHANGING = {"deploy": "deploy", "apply": "deploy", "destroy": "destroy"}
#: cdktf's options that take the next word as their value.
VALUED = frozenset(
    {
        "-a", "--app", "-o", "--output", "--outputs-file", "--parallelism",
        "--terraform-parallelism", "--var", "--var-file", "--log-level", "-c", "--hcl",
    }
)  # fmt: skip
#: Which deployments the app should synthesize, separated by blanks; empty: all.
ONLY = "SPECRACK_DEPLOYMENTS"
#: How long to wait for a Terraform that is letting go of the state after it was killed.
LOCK_TIMEOUT = "-lock-timeout=60s"


@dataclass(frozen=True, slots=True)
class Call:
    """A cdktf command line, as far as we must understand it."""

    command: str
    stacks: tuple[str, ...]
    arguments: tuple[str, ...]

    @property
    def patterns(self) -> bool:
        return any("*" in stack for stack in self.stacks)


def parse(arguments: Sequence[str]) -> Call:
    """Split a cdktf command line into the command, the stacks it names, and all the words."""
    command, stacks, skip = "", [], False
    for word in arguments:
        if skip:
            skip = False
        elif word.startswith("-"):
            skip = word in VALUED
        elif not command:
            command = word
        else:
            stacks.append(word)
    return Call(command, tuple(stacks), tuple(arguments))


def checked(call: Call, root: Path) -> list[Deployment]:
    """The deployments that ``call`` is about, read and checked, models included.

    Raises DeploymentError with all faults of all of them at once.
    """
    from infra.checks import check_models
    from infra.spec.loader import load_all

    named = () if call.patterns else call.stacks
    deployments = load_all(root, named)
    if call.command != "destroy":
        check_models(deployments, root)
    return deployments


def environment(root: Path, chosen: node.Node, tool: terraform.Terraform) -> dict[str, str]:
    """What cdktf and everything below it needs to find, and what keeps it quiet."""
    bin_folder = str(Path(sys.executable).parent)
    env = node.quiet(dict(os.environ), chosen)
    # Our interpreter first: cdktf.json says `python -m stacks`.
    env["PATH"] = f"{bin_folder}{os.pathsep}{env['PATH']}"
    cache = root / ".specrack" / "cache"
    env |= {
        # By name: cdktf puts it into shell commands, where a blank in a path would hurt.
        "TERRAFORM_BINARY_NAME": "specrack-terraform",
        terraform.OVERRIDE: tool.override,
        "SPECRACK_ROOT": str(root),
        "CHECKPOINT_DISABLE": "1",
        "DISABLE_VERSION_CHECK": "1",
        "CDKTF_HOME": str(cache / "cdktf"),
        "NODE_COMPILE_CACHE": str(cache / "node"),
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(cache / "jsii"),
        "PYTHONUNBUFFERED": "1",
    }
    if not Path(env.get("TF_CLI_CONFIG_FILE", os.devnull)).exists():
        # Terraform warns of it at every call, and works without.
        del env["TF_CLI_CONFIG_FILE"]
    flags = {action: [LOCK_TIMEOUT] for action in ("plan", "apply", "destroy")}
    if not sys.stdout.isatty():
        # Neither spinner frames nor colour codes have a place in a log.
        env |= {"CI": env.get("CI", "1"), "NO_COLOR": "1"}
        for action in ("init", "plan", "apply", "destroy"):
            flags.setdefault(action, []).append("-no-color")
    for action, wanted in flags.items():
        given = env.get(f"TF_CLI_ARGS_{action}", "")
        missing = [flag for flag in wanted if flag.partition("=")[0] not in given]
        env[f"TF_CLI_ARGS_{action}"] = " ".join([given, *missing]).strip()
    return env


def find_cli(root: Path) -> Path:
    """The installed cdktf-cli. Raises ToolError."""
    path = root / "node_modules" / ".bin" / "cdktf"
    if not path.exists():
        raise ToolError("cdktf-cli is not installed", do="run make setup")
    return path


@contextlib.contextmanager
def deploy_locks(root: Path, deployments: Sequence[Deployment]) -> Iterator[None]:
    """One deploy or destroy of a stack at a time, across processes."""
    with contextlib.ExitStack() as stack:
        for deployment in sorted(deployments, key=lambda one: one.name):
            paths = StatePaths(root, deployment.stack_key)
            stack.enter_context(
                locked(paths.base / "deploy.lock", wait_s=5, what="a deploy or destroy")
            )
        yield


def run(call: Call, root: Path, env: dict[str, str], chosen: node.Node) -> int:
    """Run cdktf-cli, pass signals on, return its exit status."""
    process = subprocess.Popen(
        [str(chosen.program), str(find_cli(root).resolve()), *call.arguments],
        cwd=root,
        env=env,
        # Kill us, and cdktf goes; Terraform below it then lets go of its state in order.
        preexec_fn=lambda: die_with_parent(signal.SIGKILL),
    )
    # Ctrl-C reaches cdktf by itself (same terminal); a SIGTERM is for us alone.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda _signal, _frame: process.terminate())
    return process.wait()


def verdict(
    call: Call, root: Path, deployments: Sequence[Deployment], status: int, deploy_id: str
) -> int:
    """The exit status to believe, and the last lines to print.

    cdktf's own 0 is not enough: it also says 0 when Terraform was killed in mid-apply.
    """
    if CHANGING.get(call.command) == "destroy":
        return status or unfinished(root, deployments)
    worst = status
    for deployment in deployments:
        paths = StatePaths(root, deployment.stack_key)
        ended = outcome.read(paths.base, deploy_id)
        if ended is None:
            if status == 0:
                print(
                    f"specrack: {deployment.name}: cdktf ended without an error, but the deploy "
                    "did not reach its smoke run; run it again",
                    file=sys.stderr,
                )
                worst = worst or EXIT_FAILED
            continue
        if ended.step != "smoke" and ended.exit_status == 0:
            # Configured, but the smoke step never came to an end.
            worst = worst or EXIT_FAILED
            print(f"{deployment.name}: FAILED between configure and smoke; deploy again")
            continue
        worst = ended.exit_status or worst
        if ended.table:
            print(f"\n{ended.table}\n")
        print(f"{deployment.name}: {ended.message}")
        if ended.report:
            print(ended.report)
    return worst


def unfinished(root: Path, deployments: Sequence[Deployment]) -> int:
    """After a destroy that cdktf calls good: is anything left in the states? Then status 1."""
    left = []
    for deployment in deployments:
        state = read_json(StatePaths(root, deployment.stack_key).terraform_state)
        if isinstance(state, dict) and state.get("resources"):
            left.append(deployment.name)
    for name in left:
        print(
            f"specrack: {name}: cdktf ended without an error, but the destroy did not finish; "
            "run it again",
            file=sys.stderr,
        )
    return EXIT_FAILED if left else 0


def approve(call: Call, deployments: Sequence[Deployment]) -> Call:
    """Nothing can be bought or lost on this machine, so a purely local deploy asks nothing."""
    local = bool(deployments) and all(one.site == "local" for one in deployments)
    if call.command in CHANGING and local and "--auto-approve" not in call.arguments:
        return Call(call.command, call.stacks, (*call.arguments, "--auto-approve"))
    return call


def execute(arguments: Sequence[str]) -> int:
    """One call of ``cdktf``. Raises SpecrackError before anything was started."""
    call = parse(arguments)
    root = find_root()
    chosen = node.find()
    tool = terraform.find(override=os.environ.get(terraform.OVERRIDE))
    find_cli(root)
    env = environment(root, chosen, tool)
    if call.command not in APP_COMMANDS:
        return run(call, root, env, chosen)
    deployments = checked(call, root)
    if call.stacks and not call.patterns:
        env[ONLY] = " ".join(one.name for one in deployments)
    if call.command not in CHANGING:
        return run(call, root, env, chosen)
    if not call.stacks and len(deployments) > 1:
        names = ", ".join(one.name for one in deployments)
        raise InputError(
            f"cdktf {call.command}: several deployments, say which: {names}",
            do=f"for example: cdktf {call.command} {deployments[0].name}",
        )
    env[outcome.DEPLOY_ID] = deploy_id = uuid.uuid4().hex
    with deploy_locks(root, deployments):
        status = run(approve(call, deployments), root, env, chosen)
        return verdict(call, root, deployments, status, deploy_id)


def main() -> int:
    """Entry point. Errors are one line each on stderr."""
    try:
        return execute(sys.argv[1:])
    except SpecrackError as error:
        for line in error.lines:
            print(f"specrack: {line}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
