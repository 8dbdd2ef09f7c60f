"""Whether what looks like an IP address is one: the checks behind the patterns.

As published, an address must have a digit and must not begin like a date. The date check also looks at the first three
numbers of an IPv4 address, so `10.10.10.10` passes for a date. Without that fault, an address is one if all of it is:
`1.2.3.4.5` has none, and `2001:db8::ff00:42:8329` is one as a whole; a port behind an IPv4 address is no part of it.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Any

import re2

from roots_pipeline.rules.pii_patterns import class_of

_LONGEST = 100  # bytes; longer runs of hexadecimal digits, colons and dots are no address
_NUMBER = rb"(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]?[0-9])"
_IPV4 = re.compile(rb"(?:^|:)(%b(?:\.%b){3})(?:$|:)" % (_NUMBER, _NUMBER))
_DIGIT = re.compile(rb"[0-9]")


def looks_like_date(match: bytes) -> bool:
    """Whether a match begins with a date that ends there or is followed by a boundary, as published.

    The shapes are yyyy-yyyy, yyyy-mm-dd, dd-mm-yyyy or dd-mm-yy, mm-yyyy or mm-yy, and yyyy-mm, with any dash, in all
    but the last one `/`, and in the full dates `.`.
    """
    return _dates().search(match) is not None


def is_published_address(match: bytes, dates_count: bool) -> bool:
    """Whether a match of the published pattern counts; dates do not if `dates_count`."""
    return _DIGIT.search(match) is not None and not (dates_count and looks_like_date(match))


def address_in(match: bytes) -> tuple[int, int] | None:
    """Where in a run of hexadecimal digits, colons and dots (and a zone) the address is, in bytes; None if nowhere."""
    if len(match) > _LONGEST or not _DIGIT.search(match):
        return None
    stop = len(match.rstrip(b"."))
    if match[:stop].endswith(b":") and not match[:stop].endswith(b"::"):
        stop -= 1
    start = len(match) - len(match.lstrip(b"."))
    inner = match[start:stop]
    try:
        ipaddress.IPv6Address(inner.decode("ascii"))
    except ValueError:
        found = _IPV4.search(inner)
        return None if found is None else (start + found.start(1), start + found.end(1))
    return start, stop


@lru_cache(maxsize=1)
def _dates() -> Any:
    dash, year, part = class_of(r"\p{Pd}"), "[1-2][0-9]{3}", "[0-3][0-9]"
    short, dotted = f"[{dash}/]", f"[{dash}/.]"
    shapes = (
        f"{year}{short}{year}",
        f"{year}{dotted}{part}{dotted}{part}",
        f"{part}{dotted}{part}{dotted}(?:[0-9]{{2}}|{year})",
        f"{part}{short}(?:[0-9]{{2}}|{year})",
        f"{year}-{part}",
    )
    boundary = class_of(r"""\s@,?!;:'"(.\p{Han}""")
    return re2.compile(f"^(?:{'|'.join(shapes)})(?:$|[{boundary}])")
