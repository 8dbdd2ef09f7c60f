"""Training a vocabulary: ours against Hugging Face's BpeTrainer, in CPU time of one thread and in memory.

Both begin with the same texts in memory and end with a `tokenizer.json` of the same content: pre-tokenizing, counting
and merging are all inside. Each side has a process of its own, whose peak above what it held before is its memory.
Kernels are compiled before the clock starts. Text: the folder of real text beside the checkout.

    python -m benchmarks.tokenizer_training [megabytes] [tokens]        BLOOM's size is 250680
"""

from __future__ import annotations

import os

os.environ.update(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1", OMP_NUM_THREADS="1")

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def ours(batch: pa.RecordBatch, size: int) -> bytes:
    """The step as the command does it, without files in between."""
    pieces = weigh([count_batches([batch])], {("und", "b"): 1}, 1)
    return orjson.dumps(tokenizer_json(train_bpe(pieces.data, pieces.offsets, pieces.counts, size)))


def theirs(texts: list[str], size: int) -> bytes:
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(PATTERN), "isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return bytes(tokenizer.to_str(), "utf-8")


def run_side(side: str, megabytes: float, size: int, output: str) -> None:
    """In a process of its own: train, write the file, print what it took as JSON."""
    texts = texts_or_leave(megabytes)
    work: Callable[[], bytes] = lambda: theirs(texts, size)  # noqa: E731
    if side == "ours":
        batch = make_batch([{"id": str(number), "text": text, "source": "b"} for number, text in enumerate(texts)])
        ours(batch.slice(0, 2000), 3000)
        work = lambda: ours(batch, size)  # noqa: E731
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    content = work()
    seconds = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    Path(output).write_bytes(content)
    text_size = sum(len(text.encode()) for text in texts)
    print(json.dumps({"seconds": seconds, "megabytes": peak / 1e3, "text": text_size / 1e6}))


def measure(side: str, megabytes: float, size: int, output: str) -> dict[str, Any]:
    line = [sys.executable, "-m", "benchmarks.tokenizer_training", side, str(megabytes), str(size), output]
    said = subprocess.run(line, check=True, capture_output=True, text=True).stdout
    facts: dict[str, Any] = json.loads(said.splitlines()[-1])
    return facts


def main() -> None:
    if sys.argv[1:2] in (["ours"], ["theirs"]):
        run_side(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
        return
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 25.0
    size = int(sys.argv[2]) if len(sys.argv) > 2 else 32_000
    texts_or_leave(0.01)
    with tempfile.TemporaryDirectory() as folder:
        mine = measure("ours", megabytes, size, f"{folder}/ours.json")
        peer = measure("theirs", megabytes, size, f"{folder}/theirs.json")
        same = json.loads(Path(f"{folder}/ours.json").read_bytes()) == json.loads(
            Path(f"{folder}/theirs.json").read_bytes()
        )
    print(f"{mine['text']:.1f} MB of text, {size:,} tokens; CPU seconds of one thread, peak megabytes above the text")
    print(f"  ours                     {mine['seconds']:8.2f} {mine['megabytes']:8.0f}")
    print(f"  Hugging Face BpeTrainer  {peer['seconds']:8.2f} {peer['megabytes']:8.0f}")
    faster, smaller = peer["seconds"] / mine["seconds"], peer["megabytes"] / max(mine["megabytes"], 1)
    print(f"  ratio                    {faster:8.1f} {smaller:8.1f}")
    print(f"the two files are {'equal' if same else 'DIFFERENT'}")
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
