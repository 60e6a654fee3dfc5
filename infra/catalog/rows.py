"""What all rows of figures share: a source and a date for every figure."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from infra.catalog.values import Frozen, SourceIds, Texts

#: A day, month, quarter or year: as exact as the source is.
AsOf = Annotated[str, Field(pattern=r"^\d{4}(?:-\d{2}(?:-\d{2})?|-Q[1-4])?$")]


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
