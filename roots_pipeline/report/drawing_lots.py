"""A fair draw without knowing how much there is: of all names that come by, the ones with the smallest hashes stay.

The draw follows from the names alone, so it is the same on every run, and whoever is drawn was noticed from its first
appearance on: what is counted of it is complete.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import xxhash

_Value = TypeVar("_Value")


class Lots(Generic[_Value]):
    """Keeps something of the `most` names with the smallest hashes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.drawn: dict[str, _Value] = {}
        self._hashes: dict[str, int] = {}

    def takes(self, name: str) -> bool:
        """Whether a name is among those drawn so far, or would be now."""
        if name in self.drawn:
            return True
        return len(self.drawn) < self._most or self._hash(name) < max(self._hashes.values())

    def put(self, name: str, value: _Value) -> None:
        """Keep something of a name that `takes` accepts; if there are too many now, the one with the largest goes."""
        self.drawn[name] = value
        self._hashes[name] = self._hash(name)
        if len(self.drawn) > self._most:
            last = max(self._hashes, key=lambda known: self._hashes[known])
            del self.drawn[last], self._hashes[last]

    @staticmethod
    def _hash(name: str) -> int:
        return xxhash.xxh3_64_intdigest(name.encode("utf-8", "surrogatepass"))
