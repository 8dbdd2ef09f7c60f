"""Numbers as a reader wants them: grouped digits, sizes in bytes, shares in percent, short marks on an axis."""

from __future__ import annotations

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def count(number: float) -> str:
    """1,234,567."""
    return f"{number:,.0f}"


def size(number: float) -> str:
    """Bytes with three significant digits: 1.23 MB (powers of 1000)."""
    power = 0
    while number >= 999.5 and power < len(_UNITS) - 1:
        number, power = number / 1000, power + 1
    return f"{number:.0f} B" if power == 0 else f"{_three(number)} {_UNITS[power]}"


def share(part: float, whole: float) -> str:
    """Percent; what is neither nothing nor all is never rounded to it."""
    if not whole:
        return "–"
    percent = 100 * part / whole
    if 0 < percent < 0.05:
        return "<0.1%"
    if 99.95 <= percent < 100:
        return ">99.9%"
    return f"{percent:.0f}%" if percent in (0, 100) else f"{percent:.1f}%"


def short(number: float) -> str:
    """At most four significant digits, thousands as k, M, G: marks on an axis and limits."""
    for factor, suffix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if 1e15 > abs(number) >= factor:
            factor = 1e3 if suffix == "k" else factor
            return f"{number / factor:.4g}{suffix}"
    return f"{number:,.0f}" if number == int(number) and abs(number) < 1e4 else f"{number:.4g}"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _three(number: float) -> str:
    return f"{number:.2f}" if number < 9.995 else f"{number:.1f}" if number < 99.95 else f"{number:.0f}"
