"""Data: hardware, models, tiers and prices, with a source and a date on every figure."""

from infra.catalog.catalog import Catalog, catalog

__all__ = ["Catalog", "catalog"]
