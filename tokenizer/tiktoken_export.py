r"""A vocabulary as the arguments of `tiktoken.Encoding`, where its merges permit.

    tiktoken.Encoding(**tiktoken_arguments("runs/mine/tokenizer/tokenizer.json"))

tiktoken knows no merges: it joins the two neighbours whose union is the token of lowest id. That is the same if ids
follow the order of the merges and every token, encoded on its own, gives itself; both are checked. tiktoken drops text
that its expression does not match and reads nested brackets in its own way, so BLOOM's expression is written out: the
separators one by one, and a second branch for what lies between words.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from roots_pipeline.core.errors import TokenizerError
from tokenizer.encode import Encoder
from tokenizer.pretokenize import SEPARATORS
from tokenizer.pretokenizers import BLOOM, SENTENCEPIECE
from tokenizer.tokenizer_file import TokenizerFile, read_tokenizer

NAMES = ("tokenizer.tiktoken", "tiktoken.json")


def tiktoken_arguments(path: str) -> dict[str, Any]:
    """`name`, `pat_str`, `mergeable_ranks` and `special_tokens` for a `tokenizer.json`.

    Raises TokenizerError if tiktoken would give other ids.
    """
    tokenizer = read_tokenizer(path)
    if len(tokenizer.patterns) > 1 or tokenizer.patterns == SENTENCEPIECE:
        raise TokenizerError(
            "tiktoken cuts text with one expression, this tokenizer with several.", where=path,
            hint="Use `digits: whole`.",
        )  # fmt: skip
    made = tokenizer.merges[:, 2]
    if np.any(np.diff(made) <= 0):
        raise TokenizerError("the ids do not follow the order of the merges, as tiktoken needs it.", where=path)
    strange = tokens_unlike_themselves(Encoder(tokenizer))
    if strange:
        raise TokenizerError(
            f"{len(strange)} tokens do not encode to themselves (first id {strange[0]}).", where=path,
            hint="tiktoken would give other ids; use tokenizers or transformers.",
        )
    special = set(tokenizer.special_ids.values())
    ranks = {token: number for number, token in enumerate(tokenizer.tokens) if number not in special and token}
    return {
        "name": "rootbloom",
        "pat_str": _expression(tokenizer),
        "mergeable_ranks": ranks,
        "special_tokens": dict(tokenizer.special_ids),
    }


def tiktoken_files(path: str) -> dict[str, bytes]:
    """`tokenizer.tiktoken`, a line for each token (base64, id), and `tiktoken.json` with the other arguments."""
    arguments = tiktoken_arguments(path)
    ranks: dict[bytes, int] = arguments.pop("mergeable_ranks")
    lines = [base64.b64encode(token) + b" %d\n" % number for token, number in ranks.items()]
    return dict(zip(NAMES, (b"".join(lines), orjson.dumps(arguments, option=orjson.OPT_INDENT_2)), strict=True))


def tokens_unlike_themselves(encoder: Encoder) -> list[int]:
    """Ids of the tokens that, taken as a piece of text, are not encoded as themselves alone."""
    special = set(encoder.special_ids.values())
    numbers = [number for number, token in enumerate(encoder.tokens) if token and number not in special]
    readable = [number for number in numbers if encoder.patterns != SENTENCEPIECE or _is_text(encoder.tokens[number])]
    pieces = pa.array([encoder.tokens[number] for number in readable], pa.large_binary())
    ids, lengths = encoder.encode_pieces(pieces)
    firsts = np.cumsum(lengths) - lengths
    own = (lengths == 1) & (ids[np.minimum(firsts, len(ids) - 1)] == np.array(readable))
    return [number for number, same in zip(readable, own.tolist(), strict=True) if not same]


def _is_text(token: bytes) -> bool:
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True


def _expression(tokenizer: TokenizerFile) -> str:
    if tokenizer.patterns != BLOOM:
        return tokenizer.patterns[0]
    others = _listed([point for point in SEPARATORS if point != 0x20])
    return rf" ?[^ {others}]+|(?:[{others}]| (?![^ {others}]))+"


def _listed(points: Sequence[int]) -> str:
    return "".join(rf"\x{{{point:X}}}" for point in points)
