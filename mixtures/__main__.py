"""Command line of the mixture step: `python -m mixtures write --recipe sample --run runs/sample`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mixtures.config import load_mixture_recipe
from mixtures.files import check_documents, read_inputs
from mixtures.lock import NAME, read_lock
from mixtures.plan import plan_rows, printable, warnings
from mixtures.verify import verify_mixture
from mixtures.write import write_mixture
from roots_pipeline.core.cli import new_app, run_app
from roots_pipeline.core.manifest import read_manifest
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.storage import join
from roots_pipeline.engines.local import LocalEngine

app = new_app("A corpus and a tokenizer to weighted Megatron .bin/.idx files.")

Recipe = Annotated[str, typer.Option(help="Name of a built-in recipe, or path to a YAML file.")]
Run = Annotated[str, typer.Option(help="Folder of the run; the mixture goes to RUN/mixture.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Worker processes (default: one per core).")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]
_MADE_BY = "python -m mixtures write"


@app.command()
def write(recipe: Recipe = "sample", run: Run = "runs/sample", workers: Workers = None, quiet: Quiet = False) -> None:
    """Encode the corpus, write .bin/.idx of every group, and freeze weights and order in a lock file."""
    progress = Progress(quiet=quiet)
    checked = load_mixture_recipe(recipe)
    with LocalEngine(workers, progress) as engine:
        lock = write_mixture(checked, run, engine, progress)
    tokens = sum(group.tokens for group in lock.groups.values())
    print(f"{len(lock.groups)} groups with {tokens:,} tokens are described in {join(run, 'mixture', NAME)}.")


@app.command()
def plan(
    run: Run = "runs/sample",
    tokens: Annotated[int, typer.Option(min=1, help="Training tokens to plan for.")] = 1_000_000,
) -> None:
    """Show what a training run of TOKENS tokens reads from each group, and how often."""
    folder = join(run, "mixture")
    max_epochs = read_manifest(folder, made_by=_MADE_BY).config["max_epochs"]
    rows = plan_rows(read_lock(join(folder, NAME)), tokens)
    table = Table(title=f"{tokens:,} tokens of {folder}", title_justify="left")
    for column in ("group", "tokens", "weight", "read", "epochs"):
        table.add_column(column, justify="left" if column == "group" else "right")
    for row in rows:
        name = Text(printable(row.name))  # not markup: a name may contain brackets
        table.add_row(name, f"{row.tokens:,}", f"{row.weight:.5f}", f"{row.read:,.0f}", f"{row.epochs:.2f}")
    Console(width=None if Console().is_terminal else 110).print(table)
    for sentence in warnings(rows, max_epochs):
        print(f"warning: {sentence}")


@app.command()
def verify(run: Run = "runs/sample") -> None:
    """Check hashes, those of corpus and tokenizer too, index, token range, document ends; show a few samples."""
    inputs = read_inputs(run)
    check_documents(inputs)
    report = verify_mixture(
        join(run, "mixture"), inputs.tokenizer_path,
        corpus=inputs.corpus.fingerprint, tokenizer=inputs.tokenizer.fingerprint,
    )  # fmt: skip
    for group, number, text in report.texts:
        print(f"{printable(group)} #{number}: {text[:100]!r}")
    print(f"verified: {report.groups} groups, {report.documents:,} documents, {report.tokens:,} tokens.")


if __name__ == "__main__":
    run_app(app)
