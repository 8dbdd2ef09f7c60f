"""What is in a vocabulary: unused and rare tokens, strange ones, the longest, and which scripts they write."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tokenizer.encode import Encoder
from tokenizer.tiktoken_export import tokens_unlike_themselves

RARE = 5  # a token that was used less often has hardly been trained
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Script:
    """Tokens whose first letter belongs to a script; `characters`: tokens that are one character; `used`: share of
    all tokens of the text."""

    name: str
    tokens: int
    characters: int
    used: float


def shown(token: bytes) -> str:
    """A token as a person can read it: spaces as ␣, what cannot be printed and bytes of cut characters escaped."""
    out = []
    for character in token.decode("utf-8", "backslashreplace"):
        if character == " ":
            out.append("␣")
        else:
            out.append(character if character.isprintable() else character.encode("unicode_escape").decode())
    return "".join(out)


def vocabulary_facts(encoder: Encoder, usage: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Facts about the tokens of a vocabulary that were used so often (by id)."""
    tokens = encoder.tokens
    special = set(encoder.special_ids.values())
    real = np.array([number not in special and bool(token) for number, token in enumerate(tokens)])
    strange = tokens_unlike_themselves(encoder)
    longest = sorted((number for number in np.flatnonzero(real).tolist()), key=lambda n: (-len(tokens[n]), n))[:_SHOWN]
    learned = int(real.sum())
    return {
        "tokens": len(tokens),
        "special": len(special),
        "unused": int((real & (usage == 0)).sum()),
        "unused_share": round(float((real & (usage == 0)).sum()) / max(1, learned), 4),
        "rare": int((real & (usage < RARE)).sum()),
        "rare_share": round(float((real & (usage < RARE)).sum()) / max(1, learned), 4),
        "rare_below": RARE,
        "unlike_themselves": len(strange),
        "unlike_themselves_examples": [_row(number, tokens, usage) for number in strange[:_SHOWN]],
        "unused_examples": [_row(n, tokens, usage) for n in np.flatnonzero(real & (usage == 0))[:_SHOWN].tolist()],
        "longest": [_row(number, tokens, usage) for number in longest],
        "scripts": [
            {"script": s.name, "tokens": s.tokens, "share": round(s.tokens / len(tokens), 4),
             "characters": s.characters, "used": round(s.used, 4)}
            for s in scripts(encoder, usage)
        ],
    }  # fmt: skip


def script_of(token: bytes) -> str:
    """The script of the first letter, as the first word of its Unicode name; what else a token is if it has none."""
    try:
        text = token.decode()
    except UnicodeDecodeError:
        return "part of a character"
    for character in text:
        if character.isalpha():
            return unicodedata.name(character, "unnamed").split()[0].split("-")[0].capitalize()
    if any(character.isnumeric() for character in text):
        return "digits"
    return "white space" if not text.strip() else "punctuation and symbols"


def scripts(encoder: Encoder, usage: npt.NDArray[np.int64]) -> list[Script]:
    """Scripts in order of their number of tokens."""
    special = set(encoder.special_ids.values())
    tokens: dict[str, int] = {}
    characters: dict[str, int] = {}
    used: dict[str, int] = {}
    for number, token in enumerate(encoder.tokens):
        if number in special or not token:
            continue
        name = script_of(token)
        tokens[name] = tokens.get(name, 0) + 1
        one = name != "part of a character" and len(token.decode()) == 1
        characters[name] = characters.get(name, 0) + one
        used[name] = used.get(name, 0) + int(usage[number])
    total = max(1, int(usage.sum()))
    found = [Script(name, tokens[name], characters[name], used[name] / total) for name in tokens]
    return sorted(found, key=lambda script: (-script.tokens, script.name))


def _row(number: int, tokens: list[bytes], usage: npt.NDArray[np.int64]) -> dict[str, Any]:
    return {"id": number, "token": shown(tokens[number]), "bytes": len(tokens[number]), "used": int(usage[number])}
