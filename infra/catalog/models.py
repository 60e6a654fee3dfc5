"""Models whose memory the planner can judge."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from infra.catalog.hardware import Positive
from infra.catalog.rows import Row
from infra.catalog.values import Count, Texts


class ModelRow(Row):
    """A model. ``ids``: hub ids, or paths from the project's root.

    ``weights_gb``: as they are loaded (BF16; F32 for the tiny pair), 1e9 bytes.
    """

    name: str
    ids: Annotated[Texts, Field(min_length=1)]
    parameters_billion: Positive
    weights_gb: Positive
    #: Key and value of one token over all layers, two bytes a number.
    kv_bytes_per_token: Count
    vocabulary: Count
