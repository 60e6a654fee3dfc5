"""The schema by itself, as code that makes deployments meets it."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal

import pytest
from pydantic import ValidationError

from infra.spec.model import Budget, Sla, Speculation


def test_broken_rules_are_all_told_when_a_model_is_made_in_code() -> None:
    with pytest.raises(ValidationError) as caught:
        Speculation(method="none", draft_tokens=3, synthetic_acceptance_length=2)
    assert "draft_tokens: has no meaning" in str(caught.value)
    assert "synthetic_acceptance_length: has no meaning" in str(caught.value)


def test_a_number_too_large_for_a_float_is_refused_and_does_not_crash() -> None:
    for number in (10**400, -(10**400)):
        with pytest.raises(ValidationError):
            Sla(ttft_p95_ms=number)
        with pytest.raises(ValidationError):
            Budget(usd_per_month=Decimal(number))


def test_money_stays_what_was_written() -> None:
    assert Budget.model_validate({"usd_per_month": 0.1}).usd_per_month == Decimal("0.1")


def test_the_types_are_imported_without_the_yaml_reader_and_the_catalogue() -> None:
    code = (
        "import sys, infra.spec, infra.spec.model;"
        "assert not [m for m in sys.modules if m.startswith(('ruamel', 'infra.catalog'))];"
        "assert infra.spec.load and infra.spec.set_value;"
        "assert 'ruamel.yaml' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_step_cannot_keep_more_tokens_than_the_draft_has_and_one() -> None:
    assert Speculation(method="draft_model", draft_tokens=3, synthetic_acceptance_length=4)
    with pytest.raises(ValidationError, match=r"at most draft_tokens \+ 1 = 4"):
        Speculation(method="draft_model", draft_tokens=3, synthetic_acceptance_length=4.5)
