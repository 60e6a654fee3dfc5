"""The types that catalogue rows are made of: strict, frozen, money as Decimal."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator


def _as_tuple(value: Any) -> Any:
    """YAML has lists; rows are frozen."""
    return tuple(value) if isinstance(value, list) else value


def _one_or_many(value: Any) -> Any:
    return (value,) if isinstance(value, str) else _as_tuple(value)


def _money(value: Any) -> Any:
    """Through ``str``, so that 5.672 is 5.672; a bool or a text is refused."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return Decimal(str(value)) if is_number else value


SourceIds = Annotated[tuple[str, ...], BeforeValidator(_one_or_many), Field(min_length=1)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]
Ints = Annotated[tuple[int, ...], BeforeValidator(_as_tuple)]
Rows = BeforeValidator(_as_tuple)
Usd = Annotated[Decimal, BeforeValidator(_money), Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


class Frozen(BaseModel):
    """Strict and frozen; validators are built on first use, because most rows are not needed."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class Span(Frozen):
    """From ``min`` to ``max``, both included."""

    min: Count
    max: Count

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}")
        return self


class UsdSpan(Frozen):
    """A range of money."""

    min: Usd
    max: Usd
