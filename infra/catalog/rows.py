"""What all catalogue rows share: strict types, and a source and date for every figure."""

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
#: A day, month, quarter or year: as exact as the source is.
AsOf = Annotated[str, Field(pattern=r"^\d{4}(?:-\d{2}(?:-\d{2})?|-Q[1-4])?$")]


class Frozen(BaseModel):
    """Strict and frozen; validators are built on first use, because most rows are not needed."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class Source(Frozen):
    """Where figures come from, and of which date the copy is that was read."""

    title: str
    where: str
    date: Annotated[str, Field(pattern=r"\d{4}")]
    verified: bool = True


class Row(Frozen):
    """A row of figures. ``source`` holds for all that ``sources`` does not name.

    Figures named in ``unverified`` must be shown as such.
    """

    source: SourceIds
    sources: dict[str, SourceIds] = Field(default_factory=dict)
    unverified: Texts = ()
    notes: str | None = None

    @model_validator(mode="after")
    def _names_its_fields(self) -> Self:
        for field in (*self.sources, *self.unverified):
            if getattr(self, field, None) is None:
                raise ValueError(f"sources or unverified names {field}, which the row has not")
        return self

    def source_of(self, field: str) -> tuple[str, ...]:
        """The ids of the sources of a field."""
        return self.sources.get(field, self.source)

    def is_verified(self, field: str) -> bool:
        """Was the figure read in a source, and not taken from memory?"""
        return field not in self.unverified


class Dated(Frozen):
    """A figure of its own date."""

    as_of: AsOf
    source: SourceIds
    verified: bool = True
    note: str | None = None


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
