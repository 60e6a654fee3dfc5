"""Plots as inline SVG: small, pure, styled by the page's CSS classes, no script."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from smoke.report.text import number

_MAX_POINTS = 600
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 14, 16, 34


@dataclass(frozen=True, slots=True)
class Axis:
    """Maps values from ``low`` to ``high`` onto pixels from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """The pixel of ``value``, kept inside the plot."""
        if self.log:
            value = max(value, self.low)
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def ticks(self, wanted: int = 5) -> list[float]:
        """Round values to write at the axis."""
        if self.log:
            exponents = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)))
            steps = (1, 2, 5) if self.high / self.low < 300 else (1,)
            every = [step * 10.0**exponent for exponent in exponents for step in steps]
            every.append(10.0 ** math.ceil(math.log10(self.high)))
            return [tick for tick in every if self.low <= tick <= self.high]
        rough = (self.high - self.low) / wanted
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(one * power for one in (1, 2, 2.5, 5, 10) if one * power >= rough * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(place * step, 12) for place in range(first, last + 1)]


def cdf(
    values: Sequence[float],
    *,
    total: int,
    title: str,
    limit: float | None,
    p95: tuple[float | None, float | None, float | None],
) -> str:
    """Empirical distribution of ``values`` (ms) among ``total`` requests, failed ones included, so
    that the curve stays below 100% where some failed. ``p95``: lower bound, value, upper bound."""
    width, height = 480.0, 250.0
    ordered = sorted(values)
    x = _value_axis(ordered, limit, _LEFT, width - _RIGHT)
    y = Axis(0, 1, height - _BOTTOM, _TOP)
    parts = [_grid_x(x, y), _grid_y(y, lambda share: f"{share:.0%}", x)]
    lower, value, upper = p95
    if lower is not None:
        right = x.at(upper) if upper is not None else x.end
        parts.append(
            f'<rect class="band" x="{x.at(lower):.1f}" y="{y.end:.1f}" '
            f'width="{max(1.0, right - x.at(lower)):.1f}" height="{y.start - y.end:.1f}"/>'
        )
    parts.append(f'<path class="hair" d="M{x.start:.1f} {y.at(0.95):.1f}H{x.end:.1f}"/>')
    points = [f"M{x.start:.1f} {y.at(0):.1f}"]
    step = max(1, len(ordered) // _MAX_POINTS)
    for rank in [*range(0, len(ordered), step), len(ordered) - 1]:
        points.append(f"H{x.at(ordered[rank]):.1f}V{y.at((rank + 1) / total):.1f}")
    points.append(f"H{x.end:.1f}")
    parts.append(f'<path class="line" d="{"".join(points)}"/>')
    if value is not None:
        parts.append(
            f'<circle class="dot" cx="{x.at(value):.1f}" cy="{y.at(0.95):.1f}" r="4">'
            f"<title>p95 {number(value)} ms</title></circle>"
        )
    if limit is not None:
        # Near the bottom, where the curve seldom is.
        parts.append(_limit_line(x, y, limit, f"SLA p95 {number(limit)}", words_at=y.at(0.1)))
    label = f"{title}, ms" + (" (log scale)" if x.log else "")
    return _svg(width, height, title, [*parts, _x_label(width, height, label)])


def timeline(
    points: Sequence[tuple[float, float | None]], *, limit: float | None, title: str
) -> str:
    """TTFT (ms) of each request over its intended send time (s), failures as crosses at the top,
    and below it the arrivals in forty bins."""
    width, height, strip = 976.0, 300.0, 62.0
    known = [value for _, value in points if value is not None]
    end_s = max((at for at, _ in points), default=1.0) or 1.0
    x = Axis(0, end_s, _LEFT, width - _RIGHT)
    top = max(known, default=1.0)
    if limit is not None and limit < 3 * top:
        top = max(top, limit)
    y = Axis(0, max(top * 1.08, 1e-9), height - _BOTTOM - strip, _TOP)
    parts = [_grid_y(y, number, x)]
    step = max(1, len(points) // 3000)
    for at, value in points[::step]:
        if value is None:
            parts.append(_cross(x.at(at), y.end + 5))
        else:
            parts.append(
                f'<circle class="point" cx="{x.at(at):.1f}" cy="{y.at(value):.1f}" r="2.4"/>'
            )
    if limit is not None and limit <= y.high:
        parts.append(
            f'<path class="limit" d="M{x.start:.1f} {y.at(limit):.1f}H{x.end:.1f}"/>'
            f'<text class="limit-text" x="{x.end - 4:.1f}" y="{y.at(limit) - 5:.1f}" '
            f'text-anchor="end">SLA p95 {number(limit)} ms</text>'
        )
    bins = 40
    counts = [0] * bins
    for at, _ in points:
        counts[min(bins - 1, int(at / end_s * bins))] += 1
    most = max(counts) or 1
    base, room = height - _BOTTOM, strip - 22
    bar_width = (x.end - x.start) / bins
    for place, count in enumerate(counts):
        tall = count / most * room
        parts.append(
            f'<rect class="arrivals" x="{x.start + place * bar_width + 1:.1f}" '
            f'y="{base - tall:.1f}" width="{bar_width - 2:.1f}" height="{tall:.1f}"/>'
        )
    parts.append(
        f'<text class="tick" x="{x.start}" y="{base - room - 5:.1f}">arrivals (up to {most} in '
        f"{number(end_s / bins)} s)</text>"
    )
    parts.append(_ticks_x(x, base))
    return _svg(width, height, title, [*parts, _x_label(width, height, "intended send time, s")])


def bars(rates: Sequence[float], *, title: str) -> str:
    """Share of drafts of which each position was kept."""
    width, height = 480.0, 220.0
    x = Axis(0, max(1, len(rates)), _LEFT, width - _RIGHT)
    y = Axis(0, 1, height - _BOTTOM, _TOP)
    parts = [_grid_y(y, lambda share: f"{share:.0%}", x)]
    wide = (x.end - x.start) / max(1, len(rates))
    for place, rate in enumerate(rates):
        left = x.at(place) + wide * 0.15
        middle = x.at(place) + wide / 2
        parts.append(
            f'<rect class="bar" x="{left:.1f}" y="{y.at(rate):.1f}" width="{wide * 0.7:.1f}" '
            f'height="{y.at(0) - y.at(rate):.1f}"/>'
        )
        if len(rates) <= 12:
            parts.append(
                f'<text class="value" x="{middle:.1f}" y="{y.at(rate) - 4:.1f}" '
                f'text-anchor="middle">{rate:.0%}</text>'
            )
        if len(rates) <= 24:
            parts.append(
                f'<text class="tick" x="{middle:.1f}" y="{y.start + 14:.1f}" '
                f'text-anchor="middle">{place + 1}</text>'
            )
    return _svg(width, height, title, [*parts, _x_label(width, height, "draft position")])


def interval(
    value: float, lower: float | None, upper: float | None, *, limit: float | None, title: str
) -> str:
    """A ratio with its interval, the 1x line and the limit."""
    width, height = 480.0, 120.0
    known = [one for one in (value, lower, upper, limit, 1.0) if one is not None]
    x = Axis(0, max(known) * 1.12 or 1.0, _LEFT, width - _RIGHT)
    y = Axis(0, 1, height - _BOTTOM, _TOP + 4)
    middle = y.at(0.5)
    parts = [_grid_x(x, y)]
    parts.append(f'<path class="one" d="M{x.at(1):.1f} {y.start:.1f}V{y.end:.1f}"/>')
    if lower is not None and upper is not None:
        parts.append(
            f'<path class="whisker" d="M{x.at(lower):.1f} {middle:.1f}H{x.at(upper):.1f}'
            f"M{x.at(lower):.1f} {middle - 8:.1f}v16M{x.at(upper):.1f} {middle - 8:.1f}v16"
            f'"/>'
        )
    parts.append(f'<circle class="dot" cx="{x.at(value):.1f}" cy="{middle:.1f}" r="5"/>')
    parts.append(
        f'<text class="value" x="{x.at(value):.1f}" y="{middle - 12:.1f}" '
        f'text-anchor="middle">{number(value)}x</text>'
    )
    if limit is not None:
        parts.append(_limit_line(x, y, limit, f"SLA ≥ {number(limit)}x", words_at=y.end + 8))
    label = "total service time off / on (above 1: speculation is faster)"
    return _svg(width, height, title, [*parts, _x_label(width, height, label)])


# ---- parts


def _value_axis(ordered: Sequence[float], limit: float | None, start: float, end: float) -> Axis:
    """Linear from 0, unless the limit is far from the values: then logarithmic."""
    high = ordered[-1] if ordered else 1.0
    middle = ordered[len(ordered) // 2] if ordered else 1.0
    if limit is None or (limit <= 4 * high and limit >= middle / 4):
        return Axis(0, max(high, limit or 0.0, 1e-9) * 1.06, start, end)
    low = max(min([*ordered[:1], limit]), 1e-6)
    return Axis(low / 1.5, max(high, limit) * 1.5, start, end, log=True)


def _limit_line(x: Axis, y: Axis, limit: float, label: str, *, words_at: float) -> str:
    at = x.at(limit)
    # The words go to the side that has room.
    anchor, shift = ("end", -5) if at > (x.start + x.end) / 2 else ("start", 5)
    return (
        f'<path class="limit" d="M{at:.1f} {y.start:.1f}V{y.end:.1f}"/>'
        f'<text class="limit-text" x="{at + shift:.1f}" y="{words_at:.1f}" '
        f'text-anchor="{anchor}">{escape(label)}</text>'
    )


def _grid_x(x: Axis, y: Axis) -> str:
    lines = "".join(f"M{x.at(tick):.1f} {y.start:.1f}V{y.end:.1f}" for tick in x.ticks())
    return f'<path class="grid" d="{lines}"/>{_ticks_x(x, y.start)}'


def _ticks_x(x: Axis, bottom: float) -> str:
    return "".join(
        f'<text class="tick" x="{x.at(tick):.1f}" y="{bottom + 14:.1f}" '
        f'text-anchor="middle">{number(tick)}</text>'
        for tick in x.ticks()
    )


def _grid_y(y: Axis, word: Callable[[float], str], x: Axis) -> str:
    ticks = y.ticks(4)
    lines = "".join(f"M{x.start:.1f} {y.at(tick):.1f}H{x.end:.1f}" for tick in ticks)
    words = "".join(
        f'<text class="tick" x="{x.start - 6:.1f}" y="{y.at(tick) + 4:.1f}" '
        f'text-anchor="end">{word(tick)}</text>'
        for tick in ticks
    )
    return f'<path class="grid" d="{lines}"/>{words}'


def _cross(x: float, y: float) -> str:
    return f'<path class="failed" d="M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"/>'


def _x_label(width: float, height: float, text: str) -> str:
    middle = (_LEFT + width - _RIGHT) / 2
    return (
        f'<text class="label" x="{middle:.1f}" y="{height - 4:.1f}" '
        f'text-anchor="middle">{escape(text)}</text>'
    )


def _svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{escape(title, quote=True)}">{"".join(parts)}</svg>'
    )
