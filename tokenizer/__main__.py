"""Command line of the tokenizer step: `python -m tokenizer train --recipe sample --run runs/sample`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from roots_pipeline.core.cli import new_app, run_app
from roots_pipeline.core.errors import TokenizerError
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.storage import exists, join, lock_folder
from roots_pipeline.engines.local import LocalEngine
from tokenizer.config import load_tokenizer_recipe
from tokenizer.count_corpus import count_corpus
from tokenizer.encode import Encoder
from tokenizer.train import train_tokenizer

app = new_app("A corpus to a byte-level BPE tokenizer, and text to token ids.")

Recipe = Annotated[str, typer.Option(help="Name of a built-in recipe, or path to a YAML file.")]
Run = Annotated[str, typer.Option(help="Folder of the run; the tokenizer goes to RUN/tokenizer.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Worker processes (default: one per core).")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]


@app.command()
def train(recipe: Recipe = "sample", run: Run = "runs/sample", workers: Workers = None, quiet: Quiet = False) -> None:
    """Count the corpus, learn the merges, write tokenizer.json and what Hugging Face wants beside it."""
    progress = Progress(quiet=quiet)
    checked = load_tokenizer_recipe(recipe)
    with LocalEngine(workers, progress) as engine:
        counts = train_tokenizer(checked, run, engine, progress).counts
    print(
        f"{counts['vocab_size']:,} tokens ({counts['padded_vocab_size']:,} rows of the embedding, "
        f"{counts['spare']:,} of them spare) from {counts['pieces']:,} distinct pieces "
        f"are in {join(run, 'tokenizer', 'tokenizer.json')}."
    )


@app.command()
def count(run: Run = "runs/sample", workers: Workers = None, quiet: Quiet = False) -> None:
    """Count the pieces of the corpus per language into RUN/tokenizer/counts.parquet; train begins with this."""
    folder = join(run, "tokenizer")
    with LocalEngine(workers, Progress(quiet=quiet)) as engine, lock_folder(folder):
        counted = count_corpus(engine, join(run, "corpus"), folder)
    print(f"{'language':<12}{'documents':>12}{'bytes':>16}{'pieces':>12}{'occurrences':>16}")
    for name, facts in counted.languages.items():
        print(f"{name:<12}{facts['documents']:>12,}{facts['bytes']:>16,}", end="")
        print(f"{facts['pieces']:>12,}{facts['occurrences']:>16,}")
    print(f"{counted.documents:,} documents, {counted.bytes:,} bytes; the counts are in {counted.path}.")


@app.command()
def encode(
    text: Annotated[str, typer.Argument(help="The text, or - to read it from standard input.")],
    run: Run = "runs/sample",
    show: Annotated[bool, typer.Option("--show", help="Also show what each id stands for, one a line.")] = False,
) -> None:
    """Print the token ids of a text with the tokenizer of a run."""
    path = join(run, "tokenizer", "tokenizer.json")
    if not exists(path):
        raise TokenizerError("this run has no tokenizer.", where=run, hint="Run `python -m tokenizer train` first.")
    encoder = Encoder.from_file(path)
    ids = encoder.encode(sys.stdin.buffer.read() if text == "-" else text)
    if not show:
        print(" ".join(map(str, ids.tolist())))
    for number in ids.tolist() if show else ():
        print(f"{number:>7}  {encoder.decode_bytes([number])!r}")


if __name__ == "__main__":
    run_app(app)
