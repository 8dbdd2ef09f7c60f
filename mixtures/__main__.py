"""Command line of the mixture step: `python -m mixtures write --recipe sample --run runs/sample`."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import asdict
from typing import Annotated, cast, get_args

import typer
from rich.text import Text

from mixtures.config import MixtureRecipe, load_mixture_recipe
from mixtures.experiment_report import verdict
from mixtures.files import check_documents, read_inputs
from mixtures.indexed import IndexedReader
from mixtures.lineage import find_documents, horizon_of, samples_of, shortened
from mixtures.lock import NAME, check_files, read_lock
from mixtures.megatron_options import Style, export_options
from mixtures.packed import training_fills
from mixtures.plan import plan_rows, printable, warnings
from mixtures.removal import remove_documents
from mixtures.trials import open_trial, run_fit, run_sweep
from mixtures.verify import verify_mixture
from mixtures.write import write_mixture
from roots_pipeline.core.cli import add_schema_command, new_app, run_app
from roots_pipeline.core.errors import MixtureError
from roots_pipeline.core.manifest import read_manifest
from roots_pipeline.core.options import DryRun, Json, Quiet, Recipe, Workers
from roots_pipeline.core.output import Output, closing_table, table
from roots_pipeline.core.recipe import nearest
from roots_pipeline.core.recipe_note import noting, recipe_for
from roots_pipeline.core.schema import describe
from roots_pipeline.core.storage import exists, join, read_json
from roots_pipeline.engines.choice import EngineName, EngineOption, RunnerOptions, open_engine
from roots_pipeline.engines.local import LocalEngine
from tokenizer.encode import Encoder

app = new_app("A corpus and a tokenizer to weighted Megatron .bin/.idx files.")

Run = Annotated[str, typer.Option(help="Folder of the run; the mixture goes to RUN/mixture.")]
_MADE_BY = "python -m mixtures write"


@app.command()
def write(
    recipe: Recipe = None,
    run: Run = "runs/sample",
    workers: Workers = None,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    json: Json = False,
    engine: EngineOption = EngineName.local,
    runner_options: RunnerOptions = None,
) -> None:
    """Encode the corpus, write .bin/.idx of every group, and freeze weights and order in a lock file."""
    output = Output(quiet, json)
    named = recipe_for(run, "mixture", recipe)
    checked = load_mixture_recipe(named)
    if dry_run:
        inputs = read_inputs(run)
        rows = inputs.corpus.counts["by_source_language_verdict"]
        would = {
            "documents": inputs.corpus.counts["kept"], "bytes": inputs.corpus.counts["kept_bytes"],
            "groups": len({(source, language) for source, language, verdict, *_ in rows if not verdict}),
            "tokenizer": inputs.tokenizer_path,
        }  # fmt: skip
        output.result({**would, "dry_run": True}, closing_table(f"would be made: {join(run, 'mixture')}", would))
        return
    with noting(run, "mixture", named), open_engine(engine, workers, runner_options, output.progress) as opened:
        lock = write_mixture(checked, run, opened, output.progress)
    tokens, path = sum(group.tokens for group in lock.groups.values()), join(run, "mixture", NAME)
    documents = sum(group.documents for group in lock.groups.values())
    output.result(
        {"lock": path, "groups": len(lock.groups), "documents": documents, "tokens": tokens},
        closing_table("mixture", {"documents": documents, "tokens": tokens, "token files": join(run, "mixture")}),
        f"{len(lock.groups)} groups with {tokens:,} tokens are described in {path}.",
    )


@app.command()
def plan(
    run: Run = "runs/sample",
    tokens: Annotated[int, typer.Option(min=1, help="Training tokens to plan for.")] = 1_000_000,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Show what a training run of TOKENS tokens reads from each group, and how often."""
    folder = join(run, "mixture")
    max_epochs = read_manifest(folder, made_by=_MADE_BY).config["max_epochs"]
    lock = read_lock(join(folder, NAME))
    packed = lock.packing != "stream"
    fills = training_fills(lock, folder, lock.sequence_length) if packed else None
    rows = plan_rows(lock, tokens, fills)
    numbers = ("tokens", "weight", "read", "epochs", "repeated", *["fill"] * packed)
    shown = table(f"{tokens:,} tokens of {folder}", ("group",), numbers)
    for row in rows:
        name = Text(printable(row.name))  # not markup: a name may contain brackets
        read = [f"{row.read:,.0f}", f"{row.epochs:.2f}", f"{row.repeated:,.0f}"]
        read += [f"{row.fill:.2%}" if row.weight else "-"] * packed
        shown.add_row(name, f"{row.tokens:,}", f"{row.weight:.5f}", *read)
    warned, repeated = list(warnings(rows, max_epochs)), sum(row.repeated for row in rows)
    sentences = [f"warning: {sentence}" for sentence in warned]
    if packed:
        padding = 1 - sum(row.weight * row.fill for row in rows)
        sentences.append(f"{tokens // lock.sequence_length:,} packed samples, {padding:.3%} padding.")
    sentences.append(f"{repeated:,.0f} of {tokens:,} tokens would be repetitions.")
    facts = {"tokens": tokens, "repeated": repeated, "groups": [asdict(row) for row in rows], "warnings": warned}
    Output(quiet, json).result(facts, shown, *sentences)


@app.command()
def verify(run: Run = "runs/sample", quiet: Quiet = False, json: Json = False) -> None:
    """Check hashes, those of corpus and tokenizer too, index, token range, document ends; show a few samples."""
    inputs = read_inputs(run)
    check_documents(inputs)
    report = verify_mixture(
        join(run, "mixture"), inputs.tokenizer_path,
        corpus=inputs.corpus.fingerprint, tokenizer=inputs.tokenizer.fingerprint,
    )  # fmt: skip
    parts = [f"{printable(group)} #{number}: {text[:100]!r}" for group, number, text in report.texts]
    parts += [
        f"{printable(name)}: {fill.samples:,} packed samples, {fill.share:.3%} full, {fill.cut:,} documents cut."
        for name, fill in report.packed.items()
    ]
    parts.append(f"verified: {report.groups} groups, {report.documents:,} documents, {report.tokens:,} tokens.")
    facts = {"groups": report.groups, "documents": report.documents, "tokens": report.tokens}
    Output(quiet, json).result(facts, *parts)


Samples = Annotated[int | None, typer.Option(min=1, help="Look at so many training samples (default: the model's).")]
Length = Annotated[int | None, typer.Option(min=1, help="Tokens that a sample predicts (default: the model's).")]

OnlyText = Annotated[bool, typer.Option("--text", help="Print only the document, decoded from its tokens.")]
Mask = Annotated[bool, typer.Option("--mask", help="Overwrite the tokens with <pad>, keep every position.")]


@app.command()
def explain(
    id: Annotated[str, typer.Argument(help="Id of a document.")],
    run: Run = "runs/sample",
    samples: Samples = None,
    sequence_length: Length = None,
    text: OnlyText = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Tell where a document lies in .bin and which training samples hold it."""
    folder = join(run, "mixture")
    read_manifest(folder, made_by=_MADE_BY)
    lock = read_lock(join(folder, NAME))
    places = find_documents(lock, folder, [id])
    if not places:
        known = printable(id[:200])
        raise MixtureError(f"the mixture has no document '{known}'.", where=folder, hint=_fate(id, folder))
    if text:
        encoder = Encoder.from_file(join(run, "tokenizer", "tokenizer.json"))
        for place in places:
            sys.stdout.buffer.write(encoder.decode_bytes(IndexedReader(join(folder, place.file))[place.sequence]))
        return
    horizon = horizon_of(lock, run, samples, sequence_length)
    found = samples_of(places, folder, horizon)
    rows = [{**asdict(place), "samples": numbers} for place, numbers in zip(places, found, strict=True)]
    parts = []
    for place, numbers in zip(places, found, strict=True):
        end = place.offset + place.tokens
        file = join(folder, place.file) + ".bin"
        parts += [
            f"{printable(id)}: group {printable(place.group)}, document {place.sequence}",
            f"  tokens {place.offset:,} to {end - 1:,} of {file} ({place.tokens:,} with its end)",
            f"  split: {place.side or 'on neither side'}",
        ]
        if place.side == "train":
            parts.append(f"  training samples: {shortened(numbers)}")
    parts.append(f"of {horizon.samples:,} samples of {horizon.sequence_length} tokens ({horizon.reason}).")
    output = Output(quiet, json)
    output.result({"horizon": asdict(horizon), "places": rows}, *parts)
    output.remark(f"The way before: python -m roots_pipeline explain {shlex.quote(id)} --run {shlex.quote(run)}")


def _fate(id: str, folder: str) -> str:
    path = join(folder, "removed.json")
    removed = read_json(path) if exists(path) else []
    if any(row["id"] == id for entry in removed for row in entry["documents"]):
        return f"It was removed; {path} tells what had read it."
    return "Its own step may tell more: `python -m roots_pipeline explain`."


@app.command()
def remove(
    run: Run = "runs/sample",
    mask: Mask = False,
    samples: Samples = None,
    sequence_length: Length = None,
    workers: Workers = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Take out of .bin/.idx the documents that `roots_pipeline remove` took out of the corpus."""
    output = Output(quiet, json)
    with LocalEngine(workers, output.progress) as engine:
        done = remove_documents(
            run, "mask" if mask else "rewrite", engine, output.progress, samples=samples,
            sequence_length=sequence_length,
        )  # fmt: skip
    used = sorted({number for numbers in done.samples for number in numbers})
    tokens = sum(place.tokens for place in done.places)
    facts = {"documents": len(done.places), "tokens": tokens, "samples_that_used_them": used}
    if not done.places:
        none = "The mixture holds no document that the corpus does not hold; its lock describes this corpus."
        output.result(facts, none)
        return
    asked = f"{done.horizon.samples:,} training samples ({done.horizon.reason})"
    output.result(
        facts,
        f"{len(done.places)} documents with {tokens:,} tokens were {'masked' if mask else 'removed'}.",
        f"{len(used):,} of {asked} had used them: {shortened(used)}.",
        f"{join(run, 'mixture', 'removed.json')} lists them by document.",
    )


InStyle = Annotated[str, typer.Option("--style", help="weighted-split-paths (BigScience) or data-path (Megatron-LM).")]
All = Annotated[bool, typer.Option("--all-documents", help="Give every document to training, held-out ones too.")]


@app.command()
def export(
    run: Run = "runs/sample",
    style: InStyle = "weighted-split-paths",
    all_documents: All = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Print the mixture as options of Megatron's trainers."""
    folder = join(run, "mixture")
    lock = read_lock(join(folder, NAME))
    check_files(lock, folder)
    if style not in get_args(Style):
        raise MixtureError(f"there is no style '{style}'.", hint=nearest(style, list(get_args(Style))))
    if lock.packing != "stream":
        print("note: Megatron's trainers read these documents as a stream, not packed.", file=sys.stderr)
    options = list(export_options(lock, folder, cast(Style, style), all_documents))
    Output(quiet, json).result({"style": style, "options": options}, *options)


Named = Annotated[str, typer.Option("--experiment", help="Name of a built-in experiment, or path to a YAML file.")]
Trainers = Annotated[int | None, typer.Option("--workers", min=1, help="Proxies at a time (default: one per core).")]


@app.command()
def sweep(
    experiment: Named = "sample",
    run: Run = "runs/sample",
    workers: Trainers = None,
    minutes: Annotated[float | None, typer.Option(min=0, help="Start no proxy after that.")] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train a small proxy for each candidate of an experiment, and look at every held-out group."""
    trial = open_trial(experiment, run)
    output = Output(quiet, json)
    left = run_sweep(trial, output.progress.say, workers or os.cpu_count() or 1, minutes)
    path = f"{trial.sweep.folder}/results.parquet"
    done = f"{left} proxies are left for the next call." if left else "all proxies are trained."
    output.result({"left": left, "results": path}, done, f"written: {path}")


@app.command()
def fit(
    experiment: Named = "sample",
    run: Run = "runs/sample",
    workers: Trainers = None,
    confirm: Annotated[bool, typer.Option("--confirm", help="Train the proposal, compare it with the base.")] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Predict the losses of weights that were not tried, and propose the best under the cap of epochs."""
    trial = open_trial(experiment, run)
    output = Output(quiet, json)
    fitted, comparison = run_fit(trial, output.progress.say, workers or os.cpu_count() or 1, confirm)
    checks = [
        f"{check.kind}: leave-one-out rank correlation {check.correlation:.3f}, mean error {check.error:.4f}"
        for check in fitted.checks
    ]
    rows = table(f"proposed by the {fitted.law.kind} law", ("domain",), ("base", "proposed", "epochs"))
    proposed = dict(zip((domain.name for domain in trial.domains), fitted.proposal.tolist(), strict=True))
    for domain in trial.domains:
        weight = proposed[domain.name]
        epochs = weight * fitted.budget / domain.total
        rows.add_row(Text(printable(domain.name)), f"{domain.base:.4f}", f"{weight:.4f}", f"{epochs:.2f}")
    verdicts = [verdict(fitted, comparison)] if comparison is not None else []
    page = f"{trial.sweep.folder}/report.html"
    facts = {"law": fitted.law.kind, "proposed": proposed, "verdict": "".join(verdicts), "page": page}
    output.result(facts, *checks, rows, *verdicts, f"written: {page}")


add_schema_command(app, "mixture", lambda: describe(MixtureRecipe))


def main() -> None:
    """The command line, for `python -m` and for the script that comes with the package."""
    run_app(app)


if __name__ == "__main__":
    main()
