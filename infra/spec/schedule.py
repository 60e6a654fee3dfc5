"""``fleet.schedule``: the hours in which machines run."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal


@dataclass(frozen=True, slots=True)
class Schedule:
    """From ``start`` to ``end`` o'clock (24: midnight), local time of ``zone`` (an IANA name)."""

    days: Literal["weekdays", "daily"]
    start: int
    end: int
    zone: str

    @property
    def hours_per_week(self) -> int:
        return (self.end - self.start) * (5 if self.days == "weekdays" else 7)

    @property
    def duty(self) -> Decimal:
        """The share of all hours in which machines run, to 0.0001."""
        return (Decimal(self.hours_per_week) / 168).quantize(Decimal("0.0001"))

    def cron(self, hour: int, *, next_day: bool = False) -> str:
        """As EventBridge Scheduler writes it: minute, hour, day of month, month, day of week, year.

        ``next_day``: the days shifted by one, for an end at midnight.
        """
        if self.days == "daily":
            return f"cron(0 {hour} * * ? *)"
        return f"cron(0 {hour} ? * {'TUE-SAT' if next_day else 'MON-FRI'} *)"

    @property
    def start_cron(self) -> str:
        return self.cron(self.start)

    @property
    def stop_cron(self) -> str:
        return self.cron(0, next_day=True) if self.end == 24 else self.cron(self.end)


def parse(text: str) -> Schedule:
    """``weekdays 08-20 Europe/Vienna``. UTC where no zone is named.

    ``text`` matches SCHEDULE_PATTERN (infra/spec/model.py); raises ValueError with what is wrong
    beyond that.
    """
    days, hours, *zone = text.split()
    start, end = (int(hour) for hour in hours.split("-"))
    if start >= end:
        raise ValueError(f"must end after it begins, got {hours}")
    name = zone[0] if zone else "UTC"
    # Loaded where a zone is named: most deployments have none.
    if zone:
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"unknown time zone {name}; write one such as Europe/Vienna") from None
    return Schedule("weekdays" if days == "weekdays" else "daily", start, end, name)
