"""Command line of the tokenizer step: `python -m tokenizer train --recipe sample --run runs/sample`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.text import Text

from roots_pipeline.core.cli import add_schema_command, new_app, run_app
from roots_pipeline.core.errors import TokenizerError
from roots_pipeline.core.options import DryRun, Json, Quiet, Recipe, Workers
from roots_pipeline.core.output import Output, closing_table, table
from roots_pipeline.core.recipe_note import noting, recipe_for
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
from tokenizer.train import preview, train_tokenizer

app = new_app("A corpus to a byte-level BPE tokenizer, and text to token ids.")

Run = Annotated[str, typer.Option(help="Folder of the run; the tokenizer goes to RUN/tokenizer.")]


@app.command()
def train(
    recipe: Recipe = None,
    run: Run = "runs/sample",
    workers: Workers = None,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    json: Json = False,
    engine: EngineOption = EngineName.local,
    runner_options: RunnerOptions = None,
) -> None:
    """Count the corpus, learn the merges, write tokenizer.json and what Hugging Face wants beside it."""
    output = Output(quiet, json)
    named = recipe_for(run, "tokenizer", recipe)
    checked = load_tokenizer_recipe(named)
    path = join(run, "tokenizer", "tokenizer.json")
    if dry_run:
        would = preview(checked, run)
        output.result(
            {**would, "path": path, "dry_run": True},
            closing_table(f"would be made: {path}", {
                "corpus": f"{would['documents']:,} documents, {would['bytes']:,} bytes",
                "sampling": would["sampling"], "merges": would["merges"], "tokens": would["vocab_size"],
                "rows of the embedding": f"{would['padded_vocab_size']:,}, {would['spare']:,} of them spare",
            }),
        )  # fmt: skip
        return
    with noting(run, "tokenizer", named), open_engine(engine, workers, runner_options, output.progress) as opened:
        counts = train_tokenizer(checked, run, opened, output.progress).counts
    packed = sorted(counts["bytes_per_token"].items(), key=lambda item: item[1])
    ends = [f"{name or 'no language'} {value:.2f}" for name, value in (packed[0], packed[-1])] if packed else ["-", "-"]
    output.result(
        {name: value for name, value in counts.items() if name != "languages"} | {"path": path},
        closing_table("tokenizer", {
            "from": counts["imported"] if "imported" in counts else f"{counts['pieces']:,} distinct pieces",
            "bytes per token": f"{ends[0]} (least) to {ends[1]} (most)",
            "to load": path, "all files": join(run, "tokenizer"),
        }),
        f"{counts['vocab_size']:,} tokens ({counts['padded_vocab_size']:,} rows of the embedding, "
        f"{counts['spare']:,} of them spare) are in {path}.",
    )  # fmt: skip


@app.command()
def count(
    recipe: Recipe = None,
    run: Run = "runs/sample",
    workers: Workers = None,
    quiet: Quiet = False,
    json: Json = False,
    engine: EngineOption = EngineName.local,
    runner_options: RunnerOptions = None,
) -> None:
    """Count the pieces of the corpus per language into RUN/tokenizer/counts.parquet; train begins with this."""
    output, folder = Output(quiet, json), join(run, "tokenizer")
    checked = load_tokenizer_recipe(recipe_for(run, "tokenizer", recipe))
    with open_engine(engine, workers, runner_options, output.progress) as opened, lock_folder(folder):
        counted = count_corpus(opened, join(run, "corpus"), folder, checked.patterns, checked.sampling)
    columns = ("documents", "bytes", "pieces", "occurrences")
    rows = table("counted", ("language",), columns)
    for name, facts in counted.languages.items():
        rows.add_row(Text(name), *(f"{facts[column]:,}" for column in columns))
    output.result(
        {"path": counted.path, "documents": counted.documents, "bytes": counted.bytes, "languages": counted.languages},
        rows, f"{counted.documents:,} documents, {counted.bytes:,} bytes; the counts are in {counted.path}.",
    )  # fmt: skip


@app.command()
def encode(
    text: Annotated[str, typer.Argument(help="The text, or - to read it from standard input.")],
    run: Run = "runs/sample",
    show: Annotated[bool, typer.Option("--show", help="Also show what each id stands for, one a line.")] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Print the token ids of a text with the tokenizer of a run."""
    encoder = Encoder.from_file(_tokenizer_of(run))
    ids = encoder.encode(sys.stdin.buffer.read() if text == "-" else text).tolist()
    pieces = [f"{number:>7}  {encoder.decode_bytes([number])!r}" for number in ids] if show else []
    Output(quiet, json).result({"ids": ids}, *(pieces if show else [" ".join(map(str, ids))]))


@app.command()
def report(
    run: Run = "runs/sample",
    on: Annotated[str | None, typer.Option(help="Measure on the text of this run instead, whose text is new.")] = None,
    monolingual_size: Annotated[int, typer.Option(min=0, help="Most tokens of a monolingual one, 0: none.")] = 32_000,
    languages: Annotated[str | None, typer.Option(help="Languages to compare with their own, by commas.")] = None,
    maximum_loss: Annotated[float | None, typer.Option(help="Fail above this loss in percent (BLOOM: 10).")] = None,
    workers: Workers = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Measure the tokenizer of a run by language and write RUN/tokenizer/report.html and report.json."""
    output, folder = Output(quiet, json), join(run, "tokenizer")
    chosen = [name.strip() for name in languages.split(",")] if languages is not None else None
    with LocalEngine(workers, output.progress) as engine, lock_folder(folder):
        content = build_report(run, engine, on=on, monolingual_size=monolingual_size, languages=chosen)
    total, vocabulary, page = content["total"], content["vocabulary"], join(folder, "report.html")
    output.result(
        {"page": page, "total": total, "unused": vocabulary["unused"]},
        f"{total['bytes_per_token']:.3f} bytes per token, {total['fertility']:.3f} tokens per word, "
        f"{vocabulary['unused']:,} tokens never used; the report is {page}.",
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
    json: Json = False,
) -> None:
    """Measure two tokenizers on the corpus of a run, language by language."""
    out, folder = Output(quiet, json), output or join(run, "tokenizer")
    with LocalEngine(workers, out.progress) as engine:
        content = compare_tokenizers(first, second, run, engine, folder)
    rows = table("A and B", ("language",), ("fertility A", "B", "bytes/token A", "B", "tokens, B to A"))
    for name, row in content["languages"].items():
        numbers = (f"{value:.3f}" for value in (*row["fertility"], *row["bytes_per_token"]))
        rows.add_row(Text(name), *numbers, f"{row['tokens_percent']:+.1f}%")
    page = join(folder, "compare.html")
    out.result(
        {"page": page, "shared_tokens": content["shared_tokens"], "languages": content["languages"]},
        rows, f"{content['shared_tokens']:,} tokens are in both; the page is {page}.",
    )  # fmt: skip


@app.command()
def export(
    run: Run = "runs/sample",
    output: Annotated[str | None, typer.Option(help="Folder to write to (default: RUN/tokenizer/tiktoken).")] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write the tokenizer of a run for tiktoken (`tokenizer.tiktoken`, `tiktoken.json`), if its merges permit."""
    folder = output or join(run, "tokenizer", "tiktoken")
    for name, content in tiktoken_files(_tokenizer_of(run)).items():
        write_bytes(join(folder, name), content)
    Output(quiet, json).result(
        {"files": [join(folder, name) for name in TIKTOKEN_NAMES]},
        f"{folder} holds {' and '.join(TIKTOKEN_NAMES)}; see `tokenizer.tiktoken_export`.",
    )


def _tokenizer_of(run: str) -> str:
    path = join(run, "tokenizer", "tokenizer.json")
    if not exists(path):
        raise TokenizerError("this run has no tokenizer.", where=run, hint="Run `python -m tokenizer train` first.")
    return path


add_schema_command(app, "tokenizer", lambda: describe(TokenizerRecipe))


def main() -> None:
    """The command line, for `python -m` and for the script that comes with the package."""
    run_app(app)


if __name__ == "__main__":
    main()
