"""``specrack backend``: where Terraform's states are kept, and who has locked them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from infra import state_backend
from infra.commands import show
from infra.errors import InputError, SpecrackError
from infra.paths import StatePaths, find_root
from infra.stranded import has_resources

app = typer.Typer(
    name="backend",
    no_args_is_help=True,
    help="Where Terraform's states are kept: on this machine, or in a bucket that a team shares.",
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program instead of text.")]
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
    epilog="Examples:\n\n`specrack backend init --bucket acme-tf-states --region us-east-1`"
)
def init(
    bucket: Annotated[str, typer.Option(help="Its name, of all of AWS's buckets.")],
    region: Annotated[str, typer.Option(help="Where the bucket is, or shall be.")],
    kms_key: Annotated[
        str | None, typer.Option("--kms", help="ARN of a key to encrypt with; else S3's own.")
    ] = None,
    json_output: Json = False,
) -> None:
    """Make the bucket for states (versions, encryption, TLS alone, nothing public), and name it
    in cdktf.json. May be run again; what is right already is left as it is."""
    from infra import backend_choice
    from infra.aws import backend

    def line(done: backend.Done) -> None:
        if not json_output:
            print(f"{'done' if done.changed else 'good'}  {done.what}", flush=True)

    with errors(json_output):
        root = find_root()
        entry = {"bucket": bucket, "region": region, **({"kms_key": kms_key} if kms_key else {})}
        wanted = state_backend.parse(entry)
        backend_choice.refuse_other(root, wanted)
        steps = backend.make(bucket, region, kms_key, say=line)
        changed = backend_choice.write(root, wanted)
        line(backend.Done(f"cdktf.json: states are kept in {bucket}", changed))
        behind = [name for name, key in _stacks(root) if _stays_behind(root, key)]
    if json_output:
        show.as_json(
            {
                "bucket": bucket,
                "region": region,
                "steps": [{"what": one.what, "changed": one.changed} for one in steps],
                "to_move": behind,
            }
        )
    for name in behind:
        if not json_output:
            print(f"next  {name} still has its state on this machine: specrack backend move {name}")


def _stacks(root: Path) -> list[tuple[str, str]]:
    """Name and stack key of every deployment that Terraform may keep in a bucket."""
    from infra.spec.loader import load_all

    found = load_all(root, ())
    return [(one.name, one.stack_key) for one in found if one.site.startswith("aws/")]


def _stays_behind(root: Path, stack_key: str) -> bool:
    return has_resources(StatePaths(root, stack_key).terraform_state)


@app.command(epilog="Examples:\n\n`specrack backend status`\n\n`specrack backend status --json`")
def status(json_output: Json = False) -> None:
    """Where each state is, how much is in it, and who has locked it."""
    from infra.tools import errored, journal
    from infra.tools.recovery import describe
    from infra.tools.states import Store

    rows = []
    with errors(json_output):
        root = find_root()
        chosen = state_backend.read(root)
        for name, key in _stacks(root):
            paths = StatePaths(root, key)
            store = Store(chosen, paths)
            state, held = store.read(), store.lock()
            open_ = journal.read(paths.base)
            rows.append(
                {
                    "deployment": name,
                    "place": store.place,
                    "serial": state.serial if state else None,
                    "resources": len(state.resources) if state else 0,
                    "lock": describe(*held) if held else None,
                    "lock_id": held[0].id if held else None,
                    "errored": str(path) if (path := errored.pending(paths)) else None,
                    "cut_off": open_.why or "unknown" if open_ else None,
                    "stays_behind": chosen.kind == "s3" and _stays_behind(root, key),
                }
            )
    if json_output:
        show.as_json({"backend": chosen.kind, "bucket": chosen.bucket, "states": rows})
        return
    table = Table(box=None, pad_edge=False)
    for title in ("deployment", "state", "resources", "to know"):
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(str(row["deployment"]), str(row["place"]), str(row["resources"]), _notes(row))
    show.console().print(table)


def _notes(row: dict[str, Any]) -> str:
    notes = []
    if row["lock"]:
        notes.append(f"{row['lock']}; lock id {row['lock_id']}")
    if row["errored"]:
        notes.append(f"a state that could not be written waits in {row['errored']}")
    if row["cut_off"]:
        notes.append(f"the last run did not end well ({row['cut_off']})")
    if row["stays_behind"]:
        notes.append(
            f"its state is still on this machine: specrack backend move {row['deployment']}"
        )
    return "; ".join(notes) or "-"


@app.command(epilog="Examples:\n\n`specrack backend move chat`")
def move(name: Name, json_output: Json = False) -> None:
    """Move a deployment's state from this machine into the bucket; a copy stays here."""
    from infra.tools.move import move as move_state

    with errors(json_output):
        root = find_root()
        deployment = one(root, name)
        done = move_state(root, name, deployment.stack_key, dict(os.environ))
    if json_output:
        show.as_json({"place": done.place, "serial": done.serial, "backup": str(done.backup)})
        return
    print(f"{name}: {done.resources} resources, serial {done.serial}, now in {done.place}")
    print(f"{name}: the old file is kept as {done.backup}")


@app.command(
    epilog="Examples:\n\n"
    "`specrack backend unlock chat --lock-id 1b5fb1d6-...`, with the id that the refused command "
    "or `specrack backend status` shows"
)
def unlock(
    name: Name,
    lock_id: Annotated[
        str | None, typer.Option(help="The id of the lock, to show which one is meant.")
    ] = None,
    json_output: Json = False,
) -> None:
    """Remove a lock that nobody holds any more. Exit status 1 when its owner is at work."""
    from infra.tools import unlocking

    with errors(json_output):
        root = find_root()
        deployment = one(root, name)
        if not lock_id:
            raise InputError(
                f"{name}: which lock? {unlocking.shown(root, deployment)}",
                do=f"specrack backend unlock {name} --lock-id ID",
            )
        lock = unlocking.unlock(root, deployment, lock_id)
    if json_output:
        show.as_json({"removed": lock.id, "place": lock.place, "who": lock.who})
        return
    print(f"{name}: removed the lock of {lock.who} ({lock.operation}, since {lock.since()})")
    print(f"{name}: the next deploy looks for what that run made, and takes it over")
