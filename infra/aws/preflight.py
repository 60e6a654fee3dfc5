"""All checks of a deployment at once: reading, in parallel, never longer than a deadline."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence

from infra.aws import subjects
from infra.aws.ask import Aws
from infra.aws.checks import (
    identity,
    image,
    inputs,
    kubernetes,
    network,
    offering,
    permissions,
    price,
    quota,
    reservation,
)
from infra.aws.faults import AwsError
from infra.aws.need import Need
from infra.aws.offline import offline_rows
from infra.aws.rows import Report, Row, no, skipped, unknown
from infra.errors import SpecrackError

#: Seconds for everything. A check that has not answered by then is a row that says so.
DEADLINE_S = 45.0

Check = Callable[[Aws, Need], Sequence[Row]]

#: (subject, check), in the order of the table. A subject stands for the rows of its check when
#: there is no answer.
CHECKS: tuple[tuple[str, Check], ...] = (
    (subjects.ZONE, offering.check),
    (subjects.QUOTA, quota.check),
    (subjects.RESERVATION, reservation.check),
    (subjects.IMAGE, image.check),
    (subjects.KUBERNETES, kubernetes.check),
    (subjects.NETWORK, network.check),
    (subjects.PERMISSIONS, permissions.check),
    (subjects.WEIGHTS, inputs.check_weights),
    (subjects.SECRET, inputs.check_secret),
    (subjects.PRICE, price.check),
)


def run(
    need: Need,
    *,
    aws: Aws | None = None,
    deadline_s: float = DEADLINE_S,
    checks: Sequence[tuple[str, Check]] = CHECKS,
) -> Report:
    """Ask the account everything that ``need`` depends on; change nothing.

    Returns within ``deadline_s`` seconds, whatever AWS does. Raises nothing for what AWS answers:
    that is in the rows.
    """
    aws = aws or Aws(need.region)
    started = time.monotonic()
    wanted = subjects.subjects(need)
    rows = list(offline_rows(need))
    who = _parallel(aws, need, ((subjects.IDENTITY, identity.check),), deadline_s)[0]
    rows += who
    if any(row.verdict in ("no", "unknown") for row in who):
        # Every other check would say the same once more.
        rows += [skipped(name, "not asked") for name in wanted]
        return Report(need.deployment, True, tuple(rows))
    left = deadline_s - (time.monotonic() - started)
    some = [(name, check) for name, check in checks if name in wanted]
    for found in _parallel(aws, need, some, left):
        rows += found
    return Report(need.deployment, True, tuple(rows))


def _parallel(
    aws: Aws, need: Need, checks: Sequence[tuple[str, Check]], deadline_s: float
) -> list[list[Row]]:
    """The rows of each check. Threads are daemons: one that hangs does not keep the process."""
    answers: queue.SimpleQueue[tuple[int, list[Row]]] = queue.SimpleQueue()

    def work(number: int, name: str, check: Check) -> None:
        answers.put((number, _rows(aws, need, name, check)))

    for number, (name, check) in enumerate(checks):
        threading.Thread(
            target=work, args=(number, name, check), name=f"preflight {name}", daemon=True
        ).start()
    found: dict[int, list[Row]] = {}
    end = time.monotonic() + deadline_s
    while len(found) < len(checks):
        try:
            number, rows = answers.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            break
        found[number] = rows
    late = f"no answer within {deadline_s:.0f} s"
    return [
        found.get(number, [unknown(name, late, "check the network, then run it again")])
        for number, (name, _) in enumerate(checks)
    ]


def _rows(aws: Aws, need: Need, name: str, check: Check) -> list[Row]:
    try:
        return list(check(aws, need))
    except AwsError as error:
        return [fault_row(name, error)]
    except SpecrackError as error:
        return [no(name, error.message, error.do or "mend the deployment file")]
    except Exception as error:
        # An answer that we cannot read must not take the other rows with it.
        return [
            unknown(
                name,
                f"the answer of AWS was not understood ({type(error).__name__}: {error})"[:200],
                "run it again; report it when it stays",
            )
        ]


def fault_row(name: str, error: AwsError) -> Row:
    """A check that got no answer. Credentials that AWS does not take refuse; what may only not be
    asked, or went unanswered, is open."""
    fault = error.fault
    if fault.kind in ("credentials", "expired", "refused", "clock", "region"):
        return no(name, fault.what, fault.do)
    prefix = f"{fault.kind}: " if fault.undecided else ""
    return unknown(name, f"{prefix}{fault.what}", fault.do or "run it again")
