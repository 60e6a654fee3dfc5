"""The ``cdktf`` command of a Specrack project.

It is the real cdktf-cli, called with the Node.js and the Terraform that were found, after the
deployment files were checked, and believed only when the last step of the deploy says so too.
``make setup`` writes it as ``.venv/bin/cdktf``.
"""

from __future__ import annotations

import contextlib
import os
import sys
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from infra import state_backend
from infra.errors import EXIT_FAILED, InputError, SpecrackError, ToolError
from infra.files import locked, read_json
from infra.paths import StatePaths, find_root
from infra.spec.model import Deployment
from infra.tools import (
    deadlines,
    errored,
    journal,
    mirror,
    node,
    outcome,
    recovery,
    steps,
    terraform,
    versions,
    watch,
)
from infra.tools.states import Store
from infra.tools.steps import Step
from infra.tools.watch import Ended, say

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
#: ``hosts``: the machines alone, neither configured nor measured. Read by the app.
LAYERS = "SPECRACK_LAYERS"
#: What stacks on AWS need; those on this machine need no provider.
AWS_PROVIDER = "hashicorp/aws"
#: cdktf's commands that run ``terraform init``, and so install providers.
INSTALLING = frozenset({"deploy", "apply", "destroy", "diff", "plan", "output"})
#: ``use_lockfile`` of the S3 backend.
S3_MINIMUM: versions.Version = (1, 10)
#: A lock that is let go of between our look at it and Terraform's.
LOCK_TIMEOUT = "-lock-timeout=20s"


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


def output_folder(call: Call, root: Path) -> Path:
    """Where cdktf puts the synthesized stacks: ``-o``, else ``cdktf.json``, else ``cdktf.out``."""
    words = list(call.arguments)
    for number, word in enumerate(words):
        if word in ("-o", "--output") and number + 1 < len(words):
            return root / words[number + 1]
        if word.startswith("--output="):
            return root / word.partition("=")[2]
    settings = read_json(root / "cdktf.json")
    named = settings.get("output") if isinstance(settings, dict) else None
    return root / (named if isinstance(named, str) and named else "cdktf.out")


def run(call: Call, root: Path, env: dict[str, str], chosen: node.Node, run_id: str) -> Ended:
    """Run cdktf-cli until it and every Terraform below it are done."""
    folder = steps.new_run(root, run_id)
    return watch.Watch(
        command=[str(chosen.program), *watch.STAY, str(find_cli(root).resolve()), *call.arguments],
        root=root,
        env=env | {steps.FOLDER: str(folder)},
        folder=folder,
        deadlines=deadlines.read(os.environ.get(deadlines.VARIABLE)),
    ).run()


def providers(
    call: Call, root: Path, env: dict[str, str], deployments: Sequence[Deployment]
) -> Call:
    """Arrange where Terraform gets the AWS provider, when a stack needs it. Changes ``env``.

    Nothing is asked for stacks on this machine, which need no provider. Raises ToolError.
    """
    if call.command not in INSTALLING or not any(on_aws(one) for one in deployments):
        return call
    choice = mirror.choose(env, mirror.cache_folder(root), (AWS_PROVIDER,))
    env.update(choice.env)
    more = [option for option in choice.options if option not in call.arguments]
    return Call(call.command, call.stacks, (*call.arguments, *more))


def on_aws(deployment: Deployment) -> bool:
    return deployment.site.startswith("aws/")


def store_of(root: Path, deployment: Deployment) -> Store:
    """Where the state of a deployment is. Raises InputError."""
    backend = state_backend.read(root) if on_aws(deployment) else state_backend.LOCAL
    return Store(backend, StatePaths(root, deployment.stack_key))


def check_backend(root: Path, deployments: Sequence[Deployment], tool: terraform.Terraform) -> None:
    """Raise ToolError when Terraform is too old for the S3 backend's lock file."""
    if tool.version is None or tool.version >= S3_MINIMUM:
        return
    if any(store_of(root, one).backend.kind == "s3" for one in deployments):
        raise ToolError(
            f"{tool.path} is {versions.show(tool.version)}; states in S3 need Terraform or "
            f"OpenTofu >= {versions.show(S3_MINIMUM)}, which lock them there",
            do="install a newer one, or name one with SPECRACK_TERRAFORM",
        )


def verdict(
    call: Call,
    root: Path,
    deployments: Sequence[Deployment],
    status: int,
    deploy_id: str,
    seen: Sequence[Step] | None = None,
) -> int:
    """The exit status to believe, and the last lines to print.

    cdktf's own 0 is not enough: it also says 0 when Terraform was killed in mid-apply. ``seen``:
    the Terraform commands of the run; None when nobody recorded them.
    """
    if CHANGING.get(call.command) == "destroy":
        return status or unfinished(root, deployments, seen)
    worst = status
    for deployment in deployments:
        paths = StatePaths(root, deployment.stack_key)
        applied = steps.last(seen, deployment.name, ("apply",)) if seen is not None else None
        fault = _apply_fault(applied) if seen is not None else ""
        ended = outcome.read(paths.base, deploy_id)
        if ended is None:
            if status == 0 and hosts_only() and not fault:
                print(f"{deployment.name}: the machines are there; nothing was configured")
            elif status == 0:
                fault = fault or "the deploy did not reach its smoke run"
                _complain(deployment, f"cdktf ended without an error, but {fault}")
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
        if ended.exit_status == 0 and fault:
            _complain(deployment, fault)
            worst = worst or EXIT_FAILED
    return worst


def _complain(deployment: Deployment, what: str) -> None:
    print(f"specrack: {deployment.name}: {what}; run it again", file=sys.stderr)


def _apply_fault(applied: Step | None) -> str:
    """What is wrong with the last apply of a stack; empty when Terraform itself said it is good."""
    if applied is None:
        return "Terraform was never asked to apply anything"
    if applied.status is None:
        return "nobody saw the end of Terraform's apply"
    if applied.status > 128:
        return f"Terraform was killed in its apply (signal {applied.status - 128})"
    if applied.status != 0:
        return f"Terraform's apply ended with {applied.status}, or was not approved"
    return ""


def hosts_only() -> bool:
    return os.environ.get(LAYERS) == "hosts"


def unfinished(
    root: Path, deployments: Sequence[Deployment], seen: Sequence[Step] | None = None
) -> int:
    """After a destroy that cdktf calls good: is anything left in the states? Then status 1."""
    left = []
    for deployment in deployments:
        state = store_of(root, deployment).read()
        if state is not None and state.resources:
            left.append(deployment)
            continue
        done = steps.last(seen, deployment.name, ("destroy", "apply")) if seen is not None else None
        if seen is not None and (done is None or done.status != 0):
            left.append(deployment)
    for deployment in left:
        _complain(deployment, "cdktf ended without an error, but the destroy did not finish")
    return EXIT_FAILED if left else 0


def approve(call: Call, deployments: Sequence[Deployment]) -> Call:
    """Nothing can be bought or lost on this machine, so a purely local deploy asks nothing."""
    local = bool(deployments) and all(one.site == "local" for one in deployments)
    if call.command in CHANGING and local and "--auto-approve" not in call.arguments:
        return Call(call.command, call.stacks, (*call.arguments, "--auto-approve"))
    return call


def changing(
    call: Call,
    root: Path,
    env: dict[str, str],
    chosen: node.Node,
    tool: terraform.Terraform,
    deployments: Sequence[Deployment],
) -> int:
    """A deploy or destroy: what an earlier one left first, then cdktf, then the verdict."""
    outdir = output_folder(call, root)
    run_id = env[outcome.DEPLOY_ID] = uuid.uuid4().hex
    command = CHANGING[call.command]
    with deploy_locks(root, deployments):
        entries = {}
        for one in deployments:
            found = recovery.Recovery(one, root, env, tool, command, say)
            found.prepare()
            entries[one.name] = journal.begin(found.paths.base, run=run_id, command=command)
        ended = run(approve(call, deployments), root, env, chosen, run_id)
        for saved in errored.rescue(root, outdir):
            say(
                f"{saved.stack_key}: Terraform could not write its state; it is kept in "
                f"{saved.path}, and the next deploy or destroy pushes it first"
            )
        status = verdict(call, root, deployments, ended.status, run_id, ended.steps)
        for one in deployments:
            _close(one, root, entries[one.name], command, ended, status)
        return _after_stop(ended, status)


def _close(
    deployment: Deployment,
    root: Path,
    entry: journal.Entry,
    command: str,
    ended: Ended,
    status: int,
) -> None:
    """Close the stack's journal when Terraform said that all is well, else say why not."""
    base = StatePaths(root, deployment.stack_key).base
    wanted = ("apply",) if command == "deploy" else ("destroy", "apply")
    done = steps.last(ended.steps, deployment.name, wanted)
    if done is None:
        # Terraform never came so far; what was open before stays open.
        if entry.since == entry.began:
            journal.close(base)
        else:
            journal.leave_open(base, entry, entry.why)
        return
    good = done.status == 0 or _measured(base, entry)
    clean = (
        good
        and not done.interrupted
        and errored.pending(StatePaths(root, deployment.stack_key)) is None
    )
    if clean and (command == "deploy" or status == 0):
        journal.close(base)
        return
    why = ended.expired or (ended.interrupted and f"stopped by {ended.interrupted}")
    if not why and done.status is not None:
        killed = done.status > 128
        why = f"killed by signal {done.status - 128}" if killed else f"ended with {done.status}"
    journal.leave_open(base, entry, why or "")


def _measured(base: Path, entry: journal.Entry) -> bool:
    """Did the run come to its smoke step? Then everything was made before, whatever it found."""
    ended = outcome.read(base, entry.run)
    return ended is not None and ended.step == "smoke"


def _after_stop(ended: Ended, status: int) -> int:
    """The last words and the exit status of a run that was stopped."""
    if ended.expired:
        say(f"{ended.expired}; it was stopped. Run the same command again to go on")
        return status or EXIT_FAILED
    if ended.interrupted:
        say(
            f"stopped by {ended.interrupted}; Terraform has ended. Run the same command again to "
            "go on, or cdktf destroy to undo"
        )
        return steps.INTERRUPTED
    return status


def execute(arguments: Sequence[str]) -> int:
    """One call of ``cdktf``. Raises SpecrackError before anything was started."""
    call = parse(arguments)
    root = find_root()
    chosen = node.find()
    tool = terraform.find(override=os.environ.get(terraform.OVERRIDE))
    find_cli(root)
    env = environment(root, chosen, tool)
    deadlines.read(os.environ.get(deadlines.VARIABLE))
    if call.command not in APP_COMMANDS:
        return _after_stop_of(run(call, root, env, chosen, uuid.uuid4().hex))
    # Before any synth: it removes the folders of stacks that it does not synthesize.
    for saved in errored.rescue(root, output_folder(call, root)):
        say(f"{saved.stack_key}: found a state that Terraform could not write: {saved.path}")
    deployments = checked(call, root)
    if call.stacks and not call.patterns:
        env[ONLY] = " ".join(one.name for one in deployments)
    check_backend(root, deployments, tool)
    call = providers(call, root, env, deployments)
    if call.command not in CHANGING:
        return _after_stop_of(run(call, root, env, chosen, uuid.uuid4().hex))
    if not call.stacks and len(deployments) > 1:
        names = ", ".join(one.name for one in deployments)
        raise InputError(
            f"cdktf {call.command}: several deployments, say which: {names}",
            do=f"for example: cdktf {call.command} {deployments[0].name}",
        )
    return changing(call, root, env, chosen, tool, deployments)


def _after_stop_of(ended: Ended) -> int:
    if ended.expired:
        say(ended.expired)
        return ended.status or EXIT_FAILED
    return steps.INTERRUPTED if ended.interrupted else ended.status


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
