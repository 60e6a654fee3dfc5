"""The acceptance record and its arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.serving.acceptance import AcceptanceRecord

counts = st.integers(0, 10**6)
records = st.builds(
    AcceptanceRecord, counts, counts, counts, st.lists(counts, max_size=6).map(tuple)
)


def test_rates_are_shares_of_what_was_counted() -> None:
    record = AcceptanceRecord(10, 40, 15, (9, 6))
    assert record.acceptance_rate == 15 / 40
    assert record.mean_acceptance_length == 2.5
    assert record.per_position_rate == (0.9, 0.6)


def test_length_does_not_suffer_from_positions_that_a_scrape_lacks() -> None:
    assert AcceptanceRecord(10, 50, 25, (9, 6)).mean_acceptance_length == 3.5


def test_nothing_drafted_gives_no_rates() -> None:
    record = AcceptanceRecord(0, 0, 0)
    assert record.acceptance_rate is None
    assert record.mean_acceptance_length is None
    assert record.per_position_rate == ()


def test_a_fallen_counter_means_a_restart_and_counts_from_there() -> None:
    after = AcceptanceRecord(3, 12, 5, (3, 2))
    assert after.since(AcceptanceRecord(10, 40, 15, (9, 6))) == after


@given(records, records)
def test_what_was_added_to_a_record_is_what_came_since(
    before: AcceptanceRecord, more: AcceptanceRecord
) -> None:
    width = max(len(before.accepted_per_position), len(more.accepted_per_position))

    def wide(record: AcceptanceRecord) -> tuple[int, ...]:
        missing = width - len(record.accepted_per_position)
        return record.accepted_per_position + (0,) * missing

    after = AcceptanceRecord(
        before.drafts + more.drafts,
        before.draft_tokens + more.draft_tokens,
        before.accepted_tokens + more.accepted_tokens,
        tuple(a + b for a, b in zip(wide(before), wide(more), strict=True)),
    )
    since = after.since(before)
    assert (since.drafts, since.draft_tokens, since.accepted_tokens) == (
        more.drafts,
        more.draft_tokens,
        more.accepted_tokens,
    )
    assert since.accepted_per_position == wide(more)


@pytest.mark.parametrize("before", [None, AcceptanceRecord(0, 0, 0)])
def test_since_the_beginning_is_everything(before: AcceptanceRecord | None) -> None:
    record = AcceptanceRecord(10, 40, 15, (9, 6))
    assert record.since(before) == record
