"""Command line of the tokenizer step: `python -m tokenizer train --recipe sample --run runs/sample`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from roots_pipeline.core.cli import add_schema_command, new_app, run_app
from roots_pipeline.core.errors import TokenizerError
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.schema import describe
from roots_pipeline.core.storage import exists, join, lock_folder, write_bytes
from roots_pipeline.engines.choice import EngineName, EngineOption, RunnerOptions, open_engine
from roots_pipeline.engines.local import LocalEngine
from tokenizer.config import TokenizerRecipe, load_tokenizer_recipe
from tokenizer.count_corpus import count_corpus
from tokenizer.encode import Encoder
from tokenizer.report.build import build_report, check_losses
from tokenizer.report.compare import compare_tokenizers
from tokenizer.tiktoken_export import NAMES as TIKTOKEN_NAMES
from tokenizer.tiktoken_export import tiktoken_files
from tokenizer.train import train_tokenizer

app = new_app("A corpus to a byte-level BPE tokenizer, and text to token ids.")

Recipe = Annotated[str, typer.Option(help="Name of a built-in recipe, or path to a YAML file.")]
Run = Annotated[str, typer.Option(help="Folder of the run; the tokenizer goes to RUN/tokenizer.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Worker processes (default: one per core).")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]


@app.command()
def train(
    recipe: Recipe = "sample",
    run: Run = "runs/sample",
    workers: Workers = None,
    quiet: Quiet = False,
    engine: EngineOption = EngineName.local,
    runner_options: RunnerOptions = None,
) -> None:
    """Count the corpus, learn the merges, write tokenizer.json and what Hugging Face wants beside it."""
    progress = Progress(quiet=quiet)
    checked = load_tokenizer_recipe(recipe)
    with open_engine(engine, workers, runner_options, progress) as opened:
        counts = train_tokenizer(checked, run, opened, progress).counts
    origin = f"from {counts['imported']}" if "imported" in counts else f"from {counts['pieces']:,} distinct pieces"
    print(
        f"{counts['vocab_size']:,} tokens ({counts['padded_vocab_size']:,} rows of the embedding, "
        f"{counts['spare']:,} of them spare) {origin} are in {join(run, 'tokenizer', 'tokenizer.json')}."
    )


@app.command()
def count(
    recipe: Recipe = "sample",
    run: Run = "runs/sample",
    workers: Workers = None,
    quiet: Quiet = False,
    engine: EngineOption = EngineName.local,
    runner_options: RunnerOptions = None,
) -> None:
    """Count the pieces of the corpus per language into RUN/tokenizer/counts.parquet; train begins with this."""
    folder = join(run, "tokenizer")
    checked = load_tokenizer_recipe(recipe)
    with open_engine(engine, workers, runner_options, Progress(quiet=quiet)) as opened, lock_folder(folder):
        counted = count_corpus(opened, join(run, "corpus"), folder, checked.patterns, checked.sampling)
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
    encoder = Encoder.from_file(_tokenizer_of(run))
    ids = encoder.encode(sys.stdin.buffer.read() if text == "-" else text)
    if not show:
        print(" ".join(map(str, ids.tolist())))
    for number in ids.tolist() if show else ():
        print(f"{number:>7}  {encoder.decode_bytes([number])!r}")


@app.command()
def report(
    run: Run = "runs/sample",
    on: Annotated[str | None, typer.Option(help="Measure on the text of this run instead, whose text is new.")] = None,
    monolingual_size: Annotated[int, typer.Option(min=0, help="Most tokens of a monolingual one, 0: none.")] = 32_000,
    languages: Annotated[str | None, typer.Option(help="Languages to compare with their own, by commas.")] = None,
    maximum_loss: Annotated[float | None, typer.Option(help="Fail above this loss in percent (BLOOM: 10).")] = None,
    workers: Workers = None,
    quiet: Quiet = False,
) -> None:
    """Measure the tokenizer of a run by language and write RUN/tokenizer/report.html and report.json."""
    chosen = [name.strip() for name in languages.split(",")] if languages is not None else None
    with LocalEngine(workers, Progress(quiet=quiet)) as engine, lock_folder(join(run, "tokenizer")):
        content = build_report(run, engine, on=on, monolingual_size=monolingual_size, languages=chosen)
    total, vocabulary = content["total"], content["vocabulary"]
    print(
        f"{total['bytes_per_token']:.3f} bytes per token, {total['fertility']:.3f} tokens per word, "
        f"{vocabulary['unused']:,} tokens never used; the report is {join(run, 'tokenizer', 'report.html')}."
    )
    if maximum_loss is not None:
        check_losses(content, maximum_loss)


@app.command()
def compare(
    first: Annotated[str, typer.Argument(help="A tokenizer.json, or the folder of a run.")],
    second: Annotated[str, typer.Argument(help="Another one.")],
    run: Run = "runs/sample",
    output: Annotated[str | None, typer.Option(help="Folder for compare.html and compare.json.")] = None,
    workers: Workers = None,
    quiet: Quiet = False,
) -> None:
    """Measure two tokenizers on the corpus of a run, language by language."""
    folder = output or join(run, "tokenizer")
    with LocalEngine(workers, Progress(quiet=quiet)) as engine:
        content = compare_tokenizers(first, second, run, engine, folder)
    print(f"{'language':<12}{'fertility A':>12}{'B':>8}{'bytes/token A':>16}{'B':>8}{'tokens, B to A':>16}")
    for name, row in content["languages"].items():
        (fertile, fertile_b), (packed, packed_b) = row["fertility"], row["bytes_per_token"]
        print(f"{name:<12}{fertile:>12.3f}{fertile_b:>8.3f}{packed:>16.3f}{packed_b:>8.3f}", end="")
        print(f"{row['tokens_percent']:>+15.1f}%")
    print(f"{content['shared_tokens']:,} tokens are in both; the page is {join(folder, 'compare.html')}.")


@app.command()
def export(
    run: Run = "runs/sample",
    output: Annotated[str | None, typer.Option(help="Folder to write to (default: RUN/tokenizer/tiktoken).")] = None,
) -> None:
    """Write the tokenizer of a run for tiktoken (`tokenizer.tiktoken`, `tiktoken.json`), if its merges permit."""
    folder = output or join(run, "tokenizer", "tiktoken")
    for name, content in tiktoken_files(_tokenizer_of(run)).items():
        write_bytes(join(folder, name), content)
    print(f"{folder} holds {' and '.join(TIKTOKEN_NAMES)}; see `tokenizer.tiktoken_export`.")


def _tokenizer_of(run: str) -> str:
    path = join(run, "tokenizer", "tokenizer.json")
    if not exists(path):
        raise TokenizerError("this run has no tokenizer.", where=run, hint="Run `python -m tokenizer train` first.")
    return path


add_schema_command(app, "tokenizer", lambda: describe(TokenizerRecipe))

if __name__ == "__main__":
    run_app(app)
