"""Training a vocabulary of 32,000 tokens: ours against Hugging Face's BpeTrainer, in CPU time of one thread.

Both begin with the same texts in memory and end with a `tokenizer.json` of the same content: pre-tokenizing, counting
and merging are all inside. Kernels are compiled before the clock starts; ours runs before and after theirs, the ratio
is of the mean. Text: the folder of real text beside the checkout.

    python -m benchmarks.tokenizer_training [megabytes]
"""

from __future__ import annotations

import os

os.environ.update(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1")

import json
import sys
import time
from collections.abc import Callable

import orjson
import pyarrow as pa
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from benchmarks._real_text import texts_or_leave
from roots_pipeline.core.documents import make_batch
from tokenizer.alphabet import SPECIAL_TOKENS
from tokenizer.bpe import train_bpe
from tokenizer.count import count_batches
from tokenizer.export import tokenizer_json
from tokenizer.pretokenize import PATTERN
from tokenizer.weights import weigh

VOCABULARY = 32_000


def ours(batch: pa.RecordBatch) -> bytes:
    """The step as the command does it, without files in between."""
    pieces = weigh([count_batches([batch])], {("und", "b"): 1}, 1)
    return orjson.dumps(tokenizer_json(train_bpe(pieces.data, pieces.offsets, pieces.counts, VOCABULARY)))


def theirs(texts: list[str]) -> bytes:
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(PATTERN), "isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return bytes(tokenizer.to_str(), "utf-8")


def clock(work: Callable[[], bytes]) -> tuple[float, bytes]:
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def main() -> None:
    texts = texts_or_leave(float(sys.argv[1]) if len(sys.argv) > 1 else 25.0)
    size = sum(len(text.encode()) for text in texts) / 1e6
    batch = make_batch([{"id": str(number), "text": text, "source": "b"} for number, text in enumerate(texts)])
    ours(batch.slice(0, 3000))
    first, mine = clock(lambda: ours(batch))
    peer, other = clock(lambda: theirs(texts))
    second, _ = clock(lambda: ours(batch))
    same = json.loads(mine) == json.loads(other)
    mean = (first + second) / 2
    print(f"{size:.1f} MB of text, {VOCABULARY:,} tokens, CPU seconds of one thread")
    print(f"  ours                     {first:7.2f} {second:7.2f}")
    print(f"  Hugging Face BpeTrainer  {peer:7.2f}")
    print(f"  ratio                    {peer / mean:7.1f}; the two files are {'equal' if same else 'DIFFERENT'}")
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
