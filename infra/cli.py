"""The ``specrack`` command: parse, call, print. What commands do is elsewhere."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from infra.commands import backend, show
from infra.errors import EXIT_FAILED, InputError, SpecrackError
from infra.paths import StatePaths, find_root

app = typer.Typer(
    name="specrack",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Provision, configure and prove LLM serving with speculative decoding.\n\n"
    "Infrastructure changes through `cdktf deploy NAME`; everything else is here.",
)

app.add_typer(backend.app, name="backend")

Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program instead of text.")]
Names = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Deployments; all if left out.")
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A deployment.")]


@contextlib.contextmanager
def errors(json_output: bool = False) -> Iterator[None]:
    """Turn errors into lines and exit statuses."""
    try:
        yield
    except SpecrackError as error:
        show.error(error, json_output=json_output)
        raise typer.Exit(error.exit_status) from None


def one(root: Path, name: str) -> Any:
    """The deployment ``name``, checked."""
    from infra.spec.loader import load_all

    return load_all(root, [name])[0]


@app.command(
    epilog="Examples:\n\n"
    "`specrack validate` checks all of deployments/\n\n"
    "`specrack validate chat --json`"
)
def validate(names: Names = None, json_output: Json = False) -> None:
    """Check deployment files; every fault of every file at once. Exit status 2 on any."""
    from infra.checks import check_models
    from infra.spec.loader import load_all

    with errors(json_output):
        root = find_root()
        deployments = load_all(root, names or ())
        check_models(deployments, root)
    if json_output:
        show.as_json({"valid": [deployment.name for deployment in deployments]})
    else:
        for deployment in deployments:
            print(f"deployments/{deployment.name}.yaml: good")


@app.command(
    epilog="Examples:\n\n`specrack plan local`\n\n`specrack plan chat --offline`\n\n"
    "`specrack plan chat --json`"
)
def plan(
    name: Name,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask no cloud account: only what files tell.")
    ] = False,
    json_output: Json = False,
) -> None:
    """Does it fit, what will it cost, will the cloud account take it? Nothing is started or spent.

    Exit status 2 when the account would refuse the deploy, 3 when that could not be found out.
    """
    from infra.commands import plan as command
    from infra.planner import estimate

    with errors(json_output):
        root = find_root()
        deployment = one(root, name)
        made = estimate(deployment)
        report = command.preflight(deployment, root, offline=offline)
    if json_output:
        both = {} if report is None else {"preflight": report.to_json()}
        show.as_json(made.to_json() | both)
    else:
        command.render(made, show.console())
        if report is not None:
            from infra.commands.preflight import render

            print()
            render(report, show.console())
    if report is not None:
        raise typer.Exit(report.exit_status)


@app.command(epilog="Examples:\n\n`specrack lock chat`")
def lock(names: Names = None, json_output: Json = False) -> None:
    """Pin machine images (deployments/NAME.lock.yaml) to what AWS recommends today."""
    from infra.commands.lock import update
    from infra.spec.loader import load_all

    with errors(json_output):
        root = find_root()
        told = {one.name: update(one, root) for one in load_all(root, names or ())}
    if json_output:
        show.as_json(told)
    else:
        for lines in told.values():
            print("\n".join(lines))


@app.command("aws-policy", epilog="Examples:\n\n`specrack aws-policy chat`")
def aws_policy(name: Name) -> None:
    """The IAM policy that deploying NAME needs, as JSON: preflight, deploy, destroy."""
    from infra.commands.policy import policy

    with errors():
        made = policy(one(find_root(), name))
    show.as_json(made)


@app.command(epilog="Examples:\n\n`specrack tiers`\n\n`specrack tiers --json`")
def tiers(
    json_output: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The table as Markdown.")] = False,
) -> None:
    """The tiers: what is asked of them, what they cost at list price, what is better today."""
    from infra.commands import tiers as command

    with errors(json_output):
        found = command.tier_sums()
    if json_output:
        show.as_json(command.as_json(found))
    elif markdown:
        print(command.markdown(found))
    else:
        command.render(found, show.console())


@app.command(
    # Options of the harness itself, for --url: see `python -m smoke --help`.
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    epilog="Examples:\n\n`specrack smoke local`\n\n"
    "`specrack smoke local --max-seconds 120 --json`\n\n"
    "`specrack smoke --url http://127.0.0.1:8000 --sla-ttft-p95-ms 300` for any endpoint; "
    "all its options: `python -m smoke --help`",
)
def smoke(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A deployment.")] = None,
    url: Annotated[
        str | None, typer.Option(help="Any OpenAI-compatible endpoint instead of a deployment.")
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option(help="Longest measured phase, in seconds.", min=1)
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of arrivals and prompts.")] = 1,
    step: Annotated[bool, typer.Option("--step", hidden=True)] = False,
    json_output: Json = False,
) -> None:
    """Check the SLA of a deployed endpoint. Exit status 0 pass, 1 fail, 3 inconclusive."""
    if url is not None:
        from smoke.cli import main as harness

        # Everything after `smoke`, as it was written: those options are the harness's to judge.
        raise typer.Exit(harness(sys.argv[sys.argv.index("smoke") + 1 :]))
    from infra.commands.smoke import run_smoke

    with errors(json_output):
        if name is None or name.startswith("-") or context.args:
            wrong = " ".join(context.args) or name or "no NAME"
            raise InputError(
                f"specrack smoke: {wrong}: not understood",
                do="name one deployment, or give --url URL and the options of python -m smoke",
            )
        root = find_root()
        status = run_smoke(
            one(root, name),
            root=root,
            max_seconds=max_seconds,
            seed=seed,
            as_step=step,
            json_output=json_output,
        )
    raise typer.Exit(status)


@app.command(epilog="Examples:\n\n`specrack status`\n\n`specrack status local --json`")
def status(names: Names = None, json_output: Json = False) -> None:
    """What is deployed, is it healthy, how often was it restarted, how was its last smoke run?"""
    from infra.commands.status import deployment_status, table
    from infra.spec.loader import load_all

    with errors(json_output):
        root = find_root()
        rows = [
            deployment_status(deployment, StatePaths(root, deployment.stack_key))
            for deployment in load_all(root, names or ())
        ]
    if json_output:
        show.as_json({"deployments": rows})
    else:
        show.console().print(table(rows))


@app.command(
    epilog="Examples:\n\n`specrack logs local -n 50`\n\n`specrack logs local --baseline -f`"
)
def logs(
    name: Name,
    lines: Annotated[int, typer.Option("-n", "--lines", help="How many of the last lines.")] = 20,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on as they come.")] = False,
    baseline: Annotated[
        bool, typer.Option("--baseline", help="The server with speculation off.")
    ] = False,
    json_output: Json = False,
) -> None:
    """The log of a deployment's server."""
    from infra.commands import status as status_module

    with errors(json_output):
        root = find_root()
        deployment = one(root, name)
        role = "baseline" if baseline else "speculative"
        path = status_module.log_path(StatePaths(root, deployment.stack_key), role)
    text = status_module.tail(path, lines)
    if json_output:
        show.as_json({"path": str(path), "lines": text})
        return
    for line in text:
        print(line)
    if follow:
        with contextlib.suppress(KeyboardInterrupt):
            for chunk in status_module.follow(path):
                print(chunk, end="", flush=True)


@app.command(epilog="Examples:\n\n`specrack report local`\n\n`specrack report local --json`")
def report(name: Name, json_output: Json = False) -> None:
    """The last smoke report of a deployment. The path of its HTML page is the last line."""
    from infra.commands.smoke import last_report

    with errors(json_output):
        root = find_root()
        loaded, folder = last_report(one(root, name), root=root)
    if json_output:
        print((folder / "report.json").read_text(encoding="utf-8"))
        return
    from smoke.report.terminal import render

    show.console().print(render(loaded))
    print(folder / "report.html")


@app.command(
    epilog="Run by the stack, with the inventory in `SPECRACK_INVENTORY`: `cdktf deploy NAME`"
)
def configure(name: Name, json_output: Json = False) -> None:
    """Bring a deployment's hosts to its launch plan (a step of `cdktf deploy`)."""
    from infra.deploy import run_configure
    from infra.inventory import from_environment

    with errors(json_output):
        root = find_root()
        inventory = from_environment()
        if inventory.deployment != name:
            raise InputError(f"SPECRACK_INVENTORY is for {inventory.deployment}, not for {name}")
        result = run_configure(inventory, root=root, say=lambda line: print(line, flush=True))
    if json_output:
        show.as_json({"ok": result.ok, "changed": result.changed, "folder": str(result.folder)})
    for failure in result.failures:
        print(failure.block(), file=sys.stderr, flush=True)
    if result.ok:
        print(f"configured: {result.changed} changed; events in {result.folder}/events.jsonl")
    raise typer.Exit(result.exit_status)


@app.command(hidden=True)
def release(stack_key: Annotated[str, typer.Argument(metavar="STACK")]) -> None:
    """Stop what runs on this machine for a stack (a step of `cdktf destroy`)."""
    from infra.deploy import release as release_stack

    with errors():
        stopped = release_stack(stack_key, root=find_root())
    print(f"{stack_key}: {'stopped' if stopped else 'nothing was running'}")


def main() -> None:
    """Entry point. Nobody is shown a traceback: it goes into a file."""
    try:
        app()
    except Exception:
        path = crash_file(traceback.format_exc())
        print(f"error: an internal fault of specrack; details: {path}", file=sys.stderr)
        sys.exit(EXIT_FAILED)


def crash_file(text: str) -> str:
    """Write a traceback where its finder can send it from; say where."""
    from infra.files import write_atomic

    try:
        path = find_root() / ".specrack" / "crash.log"
        write_atomic(path, text)
    except SpecrackError:
        return text.strip().splitlines()[-1]
    return str(path)
