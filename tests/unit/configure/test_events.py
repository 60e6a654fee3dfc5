"""What Ansible reports, as a person reads it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from infra.configure.events import Tally, failure_of, task_name


def event(kind: str, **data: Any) -> dict[str, Any]:
    return {"event": kind, "event_data": data}


def test_a_failed_command_becomes_one_block_with_host_task_file_and_stderr() -> None:
    tally = Tally()
    line = tally.add(
        event(
            "runner_on_failed",
            host="gpu-1",
            role="service",
            task="Start the servers and wait until they answer",
            task_path="/p/roles/service/tasks/main.yml:14",
            res={"msg": "non-zero return code", "rc": 2, "stderr": "one\ntwo"},
        )
    )
    assert line == "gpu-1  failed  service: Start the servers and wait until they answer"
    assert tally.failures[0].rc == 2
    assert tally.failures[0].block().splitlines() == [
        "configure failed",
        "  host   gpu-1",
        "  task   service: Start the servers and wait until they answer",
        "  file   /p/roles/service/tasks/main.yml:14",
        "  says   non-zero return code",
        "  stderr one",
        "         two",
    ]


def test_stdout_stands_in_where_a_failed_command_wrote_no_stderr() -> None:
    failure = failure_of({"host": "a", "task": "t", "res": {"rc": 1, "stdout": "the reason"}})
    assert failure.stderr == "the reason"


def test_the_failed_item_of_a_loop_is_the_one_that_is_shown() -> None:
    results = [{"failed": False, "msg": "fine"}, {"failed": True, "msg": "disk full", "rc": 1}]
    failure = failure_of({"host": "a", "task": "t", "res": {"results": results}})
    assert failure.message == "disk full"


def test_an_unreachable_host_counts_as_failed() -> None:
    tally = Tally()
    tally.add(event("runner_on_unreachable", host="a", task="t", res={"msg": "no route"}))
    assert tally.failures[0].message == "no route"


def test_ignored_failures_skips_and_includes_are_not_reported() -> None:
    tally = Tally()
    assert tally.add(event("runner_on_failed", host="a", task="t", ignore_errors=True)) is None
    assert tally.add(event("runner_on_skipped", host="a", task="t")) is None
    assert (
        tally.add(event("runner_on_ok", host="a", task="t", task_action="include_role", res={}))
        is None
    )
    assert tally.failures == []


def test_changes_and_durations_are_told() -> None:
    tally = Tally()
    told = tally.add(
        event("runner_on_ok", host="a", task="Copy", res={"changed": True}, duration=1.24)
    )
    assert told == "a  changed  Copy  (1.2 s)"
    assert (tally.changed, tally.ok) == (1, 0)


def test_a_task_is_named_with_its_role_once() -> None:
    assert task_name({"role": "service", "task": "Copy"}) == "service: Copy"
    assert task_name({"role": "service", "task": "service : Copy"}) == "service : Copy"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
RESULT = st.dictionaries(
    st.sampled_from(["msg", "rc", "stderr", "stdout", "results", "changed", "failed"]), JSON
)


@given(
    st.sampled_from(
        ["playbook_on_task_start", "runner_on_ok", "runner_on_failed", "runner_on_unreachable"]
    ),
    RESULT,
)
def test_no_result_of_a_module_breaks_the_tally(kind: str, result: dict[str, Any]) -> None:
    tally = Tally()
    tally.add(event(kind, host="a", task="t", res=result))
    for failure in tally.failures:
        assert failure.block().startswith("configure failed")
