"""The catalogue: each file is read on first use, and once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from infra.catalog.reading import named, read_yaml, row, rows
from infra.errors import InputError

if TYPE_CHECKING:
    from infra.catalog.hardware import Accelerator, Instance, MarketRate
    from infra.catalog.models import ModelRow
    from infra.catalog.rows import Source
    from infra.catalog.tiers import Tier

DATA = Path(__file__).parent / "data"


T = TypeVar("T", "Accelerator", "Instance")


class Rows(Mapping[str, T]):
    """The rows in a folder, one a file called like the row. Frozen: it has no way to set one.

    Reading a row raises InputError for a fault in it, naming the file.
    """

    def __init__(
        self, folder: Path, kind: type[T], judge: Callable[[Path, T], None] | None = None
    ) -> None:
        self._folder = folder
        self._kind: type[T] = kind
        self._judge: Callable[[Path, T], None] | None = judge
        self._read: dict[str, T] = {}

    @cached_property
    def _names(self) -> dict[str, None]:
        return dict.fromkeys(sorted(path.stem for path in self._folder.glob("*.yaml")))

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, name: str) -> T:
        if name not in self._read:
            if name not in self._names:
                raise KeyError(name)
            path = self._folder / f"{name}.yaml"
            found = row(self._kind, read_yaml(path), path=path)
            if found.name != name:
                raise InputError(f"{path}: name must be {name} like the file's, got {found.name}")
            if self._judge is not None:
                self._judge(path, found)
            self._read[name] = found
        return self._read[name]


class Catalog:
    """Hardware, models, tiers and prices below ``folder`` (the data of this package).

    Nothing is read before it is asked for: the names of tiers are the names of files, and one tier
    is one file. All properties raise InputError, naming file and row, for a fault in the data.
    """

    def __init__(self, folder: Path = DATA) -> None:
        self.folder = folder
        self._tiers: dict[str, Tier] = {}

    @cached_property
    def tier_names(self) -> tuple[str, ...]:
        """The names that a deployment may give as ``tier``."""
        return tuple(sorted(path.stem for path in (self.folder / "tiers").glob("*.yaml")))

    def tier(self, name: str) -> Tier:
        """The tier called ``name``. Raises InputError for an unknown one."""
        from infra.catalog.tiers import Tier

        if name not in self.tier_names:
            raise InputError(f"unknown tier {name!r}; known are {', '.join(self.tier_names)}")
        if name not in self._tiers:
            path = self.folder / "tiers" / f"{name}.yaml"
            self._tiers[name] = row(Tier, read_yaml(path), path=path)
        return self._tiers[name]

    @cached_property
    def sources(self) -> Mapping[str, Source]:
        """Sources by id."""
        from infra.catalog.rows import Source

        path = self.folder / "sources.yaml"
        content = read_yaml(path)
        if not isinstance(content, dict):
            raise InputError(f"{path}: must be a mapping of ids to sources")
        return MappingProxyType(
            {key: row(Source, value, path=path, where=str(key)) for key, value in content.items()}
        )

    @cached_property
    def accelerators(self) -> Mapping[str, Accelerator]:
        """Accelerators by name; each is a file, read when it is asked for."""
        from infra.catalog.hardware import Accelerator

        return Rows(self.folder / "accelerators", Accelerator)

    @cached_property
    def instances(self) -> Mapping[str, Instance]:
        """Machines by name, each with a known accelerator, or none; each is a file, read when it
        is asked for."""
        from infra.catalog.hardware import Instance

        return Rows(self.folder / "instances", Instance, self._judge)

    def _judge(self, path: Path, instance: Instance) -> None:
        kind = instance.accelerator
        if (kind is None) != (instance.accelerators == 0):
            raise InputError(f"{path}: {instance.name}: accelerator and accelerators disagree")
        if kind is not None and kind not in self.accelerators:
            raise InputError(f"{path}: {instance.name}: unknown accelerator {kind}")

    def instance(self, name: str) -> Instance:
        """The machine called ``name``. Raises InputError for an unknown one."""
        if name not in self.instances:
            raise InputError(f"unknown instance {name!r}; known are {', '.join(self.instances)}")
        return self.instances[name]

    @cached_property
    def models(self) -> Mapping[str, ModelRow]:
        """Models by id: a hub id, or a path from the project's root."""
        from infra.catalog.models import ModelRow

        path = self.folder / "models.yaml"
        found: dict[str, ModelRow] = {}
        for model in named(ModelRow, path).values():
            for key in model.ids:
                if key in found:
                    raise InputError(f"{path}: two rows have the id {key}")
                found[key] = model
        return MappingProxyType(found)

    @cached_property
    def market(self) -> tuple[MarketRate, ...]:
        """Rates per GPU hour elsewhere."""
        from infra.catalog.hardware import MarketRate

        return tuple(rows(MarketRate, self.folder / "market.yaml"))


@lru_cache(maxsize=1)
def catalog() -> Catalog:
    """The built-in catalogue, one for the process."""
    return Catalog()
