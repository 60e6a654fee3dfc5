"""Models whose memory the planner can judge."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from infra.catalog.hardware import Positive
from infra.catalog.rows import Count, Row, Texts


class ModelRow(Row):
    """A model. ``weights_gb``: BF16 or F16, 1e9 bytes. ``ids``: hub ids, or paths from the root."""

    name: str
    ids: Annotated[Texts, Field(min_length=1)]
    parameters_billion: Positive
    weights_gb: Positive
    #: Key and value of one token over all layers, BF16.
    kv_bytes_per_token: Count
    vocabulary: Count
