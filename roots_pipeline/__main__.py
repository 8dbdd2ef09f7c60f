"""Command line of the corpus step: `python -m roots_pipeline run --recipe sample --run runs/sample`.

`plan` shows what `run` would do, `run` makes a corpus, `remember` keeps its hashes and signatures for later ones,
`verify` checks it, `review` shows what decontamination found, `explain` tells what became of a document, `remove` takes
documents out, `report` shows a run, `explore` serves a page on which limits are moved, `card` describes a corpus for
others, `language-model` trains the models of the perplexity filter on a corpus, and `schema` prints what a recipe may
say.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import asdict
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Table

from roots_pipeline.config import advice_on, load_corpus_recipe, with_limit
from roots_pipeline.core.cli import add_schema_command, new_app, run_app
from roots_pipeline.core.errors import RecipeError, StorageError
from roots_pipeline.core.manifest import Manifest
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.storage import join
from roots_pipeline.decontamination.review import write_review
from roots_pipeline.dedup.reference import Rememberable, write_reference
from roots_pipeline.engines.choice import EngineName, EngineOption, RunnerOptions, open_engine, what_ran
from roots_pipeline.engines.local import LocalEngine
from roots_pipeline.explain import as_text, explain_document
from roots_pipeline.language_model import Settings, make_models
from roots_pipeline.plan import RunPlan, plan_corpus
from roots_pipeline.plan_table import print_plan
from roots_pipeline.recipe_schema import corpus_schema
from roots_pipeline.removal import read_names, remove_documents
from roots_pipeline.report import write_report
from roots_pipeline.report.card import write_card
from roots_pipeline.run import run_corpus
from roots_pipeline.verify import verify_corpus

app = new_app("Raw text to a filtered, deduplicated corpus.")

Recipe = Annotated[str, typer.Option(help="Name of a built-in recipe, or path to a YAML file.")]
Run = Annotated[str, typer.Option(help="Folder of the run; the corpus goes to RUN/corpus.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Worker processes (default: one per core).")]
To = Annotated[str, typer.Option(help="Folder for the reference.")]
Id = Annotated[str, typer.Argument(help="Id of the document.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON list instead of sentences.")]
Names = Annotated[str | None, typer.Option(help="File with one name a line.")]
Examples = Annotated[int, typer.Option(min=0, help="Hits shown of each evaluation set.")]
Seed = Annotated[int, typer.Option(help="Draws the hits that are shown.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first so many documents of each source.")]
Seconds = Annotated[float, typer.Option(min=0, help="How long the trial on samples may take, about.")]
Object = Annotated[bool, typer.Option("--json", help="One JSON object instead of tables.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port on this machine; 0 takes a free one.")]
Closing = Annotated[bool, typer.Option("--json", help="The closing table as one JSON object.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Change nothing: show the plan, from a small sample.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, only the closing table.")]


@app.command()
def run(
    recipe: Recipe = "sample",
    run: Run = "runs/sample",
    workers: Workers = None,
    limit: Limit = None,
    quiet: Quiet = False,
    json: Closing = False,
    dry_run: DryRun = False,
    engine: EngineOption = EngineName.local,
    runner_options: RunnerOptions = None,
) -> None:
    """Run a recipe: read, measure, judge, deduplicate, write. The same command resumes a run that was stopped."""
    progress = Progress(quiet=quiet)
    checked = load_corpus_recipe(recipe)
    if limit is not None:
        checked = with_limit(checked, limit)
    folder = join(run, "corpus")
    if dry_run:
        _show(plan_corpus(checked, folder, workers or os.cpu_count() or 1, 0), json)
        return
    for advice in advice_on(checked):
        progress.say(advice)
    with open_engine(engine, workers, runner_options, progress) as opened:
        manifest = run_corpus(checked, folder, opened, progress)
        if json:
            print(orjson.dumps(_summary(manifest, folder, what_ran(opened))).decode())
        else:
            _print_summary(manifest, folder, what_ran(opened))
    _verify(folder, hashes=False, quiet=json)


@app.command()
def plan(
    recipe: Recipe = "sample",
    run: Run = "runs/sample",
    workers: Workers = None,
    seconds: Seconds = 10.0,
    limit: Limit = None,
    json: Object = False,
) -> None:
    """Show what `run` would do: inputs, tasks, what is done already; and predict time and disk from a sample."""
    checked = load_corpus_recipe(recipe)
    if limit is not None:
        checked = with_limit(checked, limit)
    _show(plan_corpus(checked, join(run, "corpus"), workers or os.cpu_count() or 1, seconds), json)


def _show(found: RunPlan, json: bool) -> None:
    if json:
        print(orjson.dumps(asdict(found)).decode())
    else:
        print_plan(found)


@app.command()
def remember(to: To, recipe: Recipe = "sample", run: Run = "runs/sample", workers: Workers = None) -> None:
    """Write what later corpora need to leave out what is in this one: their recipes name it in `against`."""
    stages = [entry.made for entry in load_corpus_recipe(recipe).stages if isinstance(entry.made, Rememberable)]
    if not stages:
        raise RecipeError("no stage of this recipe can remember its documents.", where=recipe,
                          hint="exact_duplicates and near_duplicates can.")
    progress = Progress(quiet=True)
    with LocalEngine(workers, progress) as engine:
        for folder in write_reference(list({stage.name: stage for stage in stages}.values()), join(run, "corpus"), to,
                                      engine):
            print(f"remembered: {folder}")


@app.command()
def verify(run: Run = "runs/sample") -> None:
    """Check a corpus: files and sums as in its manifest, and a kept twin for each duplicate that was dropped."""
    _verify(join(run, "corpus"), hashes=True)


@app.command()
def review(run: Run = "runs/sample", examples: Examples = 12, seed: Seed = 0) -> None:
    """Write RUN/corpus/contamination.html: which evaluation items were found where, and hits to judge by eye."""
    print(f"review: {write_review(join(run, 'corpus'), examples=examples, seed=seed)}")


@app.command()
def report(run: Run = "runs/sample") -> None:
    """Write RUN/report.html from whatever steps have finished in a run folder."""
    print(f"report: {write_report(run)}")


@app.command()
def explore(run: Run = "runs/sample", port: Port = 8080) -> None:
    """Serve a local page on which limits are moved, texts are tried, and the changes are written as a recipe."""
    from roots_pipeline.explorer.server import serve  # a web server; no other command needs one

    serve(join(run, "corpus"), port)


@app.command()
def card(
    name: Annotated[str, typer.Option(help="Name of the data set: NAME or ORGANISATION/NAME.")],
    run: Run = "runs/sample",
    url: Annotated[str | None, typer.Option(help="Where it will be found (default: on the Hugging Face Hub).")] = None,
    description: Annotated[str | None, typer.Option(help="A sentence on what it is.")] = None,
) -> None:
    """Write RUN/corpus/README.md for people, croissant.json for programs, and the ledger licenses.csv."""
    for path in write_card(join(run, "corpus"), name, url=url, description=description):
        print(f"card: {path}")


@app.command()
def explain(id: Id, run: Run = "runs/sample", json: Json = False) -> None:
    """Tell what became of a document: its measures and limits, its verdict, and what caused it."""
    found = explain_document(join(run, "corpus"), id)
    print(orjson.dumps([asdict(entry) for entry in found]).decode() if json else "\n\n".join(map(as_text, found)))


@app.command()
def remove(run: Run = "runs/sample", ids: Names = None, urls: Names = None) -> None:
    """Take documents out of a finished corpus, and out of all later runs in this folder."""
    if ids is None and urls is None:
        raise RecipeError("nothing was asked for.", hint="Name a file with one id or URL a line: --ids or --urls FILE.")
    done = remove_documents(
        join(run, "corpus"), ids=read_names(ids) if ids else (), urls=read_names(urls) if urls else ())
    print(f"{done.documents} documents were removed, {done.rejected} rejected ones lost their text.")
    if done.unknown:
        more = f" and {len(done.unknown) - 5} more" if len(done.unknown) > 5 else ""
        print(f"not in this corpus: {', '.join(done.unknown[:5])}{more}.")


@app.command(name="language-model")
def language_model(
    language: Annotated[str, typer.Argument(help="Code of the language.")],
    to: Annotated[str, typer.Option(help="Folder for the models.")],
    run: Run = "runs/sample",
    pieces: Annotated[int, typer.Option(help="Pieces of the SentencePiece model.")] = 65_536,
    order: Annotated[int, typer.Option(help="Length of the longest n-grams.")] = 5,
    megabytes: Annotated[int, typer.Option(help="Text that the pieces are chosen by.")] = 100,
    lmplz: Annotated[str, typer.Option(help="KenLM's estimator: a name on the PATH, or a path.")] = "lmplz",
) -> None:
    """Train SentencePiece and KenLM models of a language on a corpus, for the stage roots_perplexity."""
    made = make_models(run, language, to, Settings(pieces, order, megabytes, lmplz=lmplz))
    print(f"{made.documents} documents: {made.sentencepiece}, {made.kenlm}")
    if made.perplexities:
        print("perplexity of documents held back: "
              + ", ".join(f"{share:.0%} below {value}" for share, value in made.perplexities.items()))


def _verify(folder: str, *, hashes: bool, quiet: bool = False) -> None:
    found = verify_corpus(folder, hashes=hashes)
    for problem in found.problems:
        print(problem)
    if found.problems:
        raise StorageError(f"the corpus does not add up ({len(found.problems)} problems, above).", where=folder,
                           hint="Delete the folder's .work/write and run the recipe again.")
    if quiet:
        return
    stayed = sum(number for (_, fate), number in found.twins.items() if not fate)
    later = Counter({fate: number for (_, fate), number in found.twins.items() if fate})
    rest = "".join(f"; the twins of {number} went later ({fate})" for fate, number in sorted(later.items()))
    print(f"verified: {found.kept} kept + {found.rejected} rejected = {found.read} read; "
          f"{stayed} duplicates have a kept twin{rest}.")


def _by_source(manifest: Manifest) -> dict[str, dict[str, int]]:
    """Documents by source and verdict; '' for kept ones."""
    sources: dict[str, dict[str, int]] = {}
    for source, _, verdict, documents, _ in manifest.counts["by_source_language_verdict"]:
        sources.setdefault(source, {}).setdefault(verdict, 0)
        sources[source][verdict] += documents
    return sources


def _summary(manifest: Manifest, folder: str, ran: str) -> dict[str, Any]:
    names = ("read", "kept", "rejected", "kept_bytes", "bad_records")
    return {"folder": folder, **{name: manifest.counts[name] for name in names}, "ran": ran,
            "sources": {source: {"kept": verdicts.pop("", 0), "dropped": verdicts}
                        for source, verdicts in _by_source(manifest).items()}}


def _print_summary(manifest: Manifest, folder: str, ran: str) -> None:
    counts = manifest.counts
    sources = _by_source(manifest)
    table = Table(title=f"corpus in {folder}", title_justify="left")
    for column in ("source", "read", "kept", "dropped", "most frequent reasons"):
        table.add_column(column, justify="right" if column in ("read", "kept", "dropped") else "left")
    for source, verdicts in sources.items():
        kept, read = verdicts.pop("", 0), sum(verdicts.values())
        top = sorted(verdicts.items(), key=lambda item: (-item[1], item[0]))[:3]
        table.add_row(source, str(kept + read), str(kept), str(read), ", ".join(f"{name} {n}" for name, n in top))
    console = Console(width=None if Console().is_terminal else 120)
    console.print(table)
    print(f"{counts['kept']} of {counts['read']} documents kept ({counts['kept_bytes']:,} bytes); {ran}.")
    if counts["bad_records"]:
        print(f"{counts['bad_records']} records could not be read: see {join(folder, 'quarantine')}.")


add_schema_command(app, "corpus", corpus_schema)

if __name__ == "__main__":
    run_app(app)
