"""Command line of the corpus step: `python -m roots_pipeline run --recipe sample --run runs/sample`.

`plan` shows what `run` would do, `run` makes a corpus, `remember` keeps its hashes and signatures for later ones,
`verify` checks it, `review` shows what decontamination found, `explain` tells what became of a document, `remove` takes
documents out, `report` shows a run, `explore` serves a page on which limits are moved, `card` describes a corpus for
others, `language-model` trains the models of the perplexity filter on a corpus, and `schema` prints what a recipe may
say.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Annotated

import typer

from roots_pipeline.advice import advice_on_corpus
from roots_pipeline.closing import check_corpus, closing_facts, closing_parts
from roots_pipeline.config import advice_on, load_corpus_recipe, with_limit
from roots_pipeline.core.cli import add_schema_command, new_app, run_app
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.options import DryRun, Json, Quiet, Recipe, Workers
from roots_pipeline.core.output import Output
from roots_pipeline.core.recipe_note import noting, recipe_for
from roots_pipeline.core.storage import exists, join
from roots_pipeline.decontamination.review import write_review
from roots_pipeline.dedup.reference import Rememberable, write_reference
from roots_pipeline.engines.choice import EngineName, EngineOption, RunnerOptions, open_engine, what_ran
from roots_pipeline.engines.local import LocalEngine, prepare
from roots_pipeline.explain import as_text, explain_document
from roots_pipeline.language_model import Settings, make_models
from roots_pipeline.plan import plan_corpus
from roots_pipeline.plan_table import plan_parts
from roots_pipeline.recipe_schema import corpus_schema
from roots_pipeline.removal import read_names, remove_documents
from roots_pipeline.report import write_report
from roots_pipeline.report.card import write_card
from roots_pipeline.run import run_corpus

app = new_app("Raw text to a filtered, deduplicated corpus.")

Run = Annotated[str, typer.Option(help="Folder of the run; the corpus goes to RUN/corpus.")]
To = Annotated[str, typer.Option(help="Folder for the reference.")]
Id = Annotated[str, typer.Argument(help="Id of the document.")]
Names = Annotated[str | None, typer.Option(help="File with one name a line.")]
Examples = Annotated[int, typer.Option(min=0, help="Hits shown of each evaluation set.")]
Seed = Annotated[int, typer.Option(help="Draws the hits that are shown.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first so many documents of each source.")]
Seconds = Annotated[float, typer.Option(min=0, help="How long the trial on samples may take, about.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port on this machine; 0 takes a free one.")]


@app.command()
def run(
    recipe: Recipe = None,
    run: Run = "runs/sample",
    workers: Workers = None,
    limit: Limit = None,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    json: Json = False,
    engine: EngineOption = EngineName.local,
    runner_options: RunnerOptions = None,
) -> None:
    """Run a recipe: read, measure, judge, deduplicate, write. The same command resumes a run that was stopped."""
    output = Output(quiet, json)
    named = recipe_for(run, "corpus", recipe)
    checked = load_corpus_recipe(named)
    if limit is not None:
        checked = with_limit(checked, limit)
    folder = join(run, "corpus")
    if dry_run:
        found = plan_corpus(checked, folder, workers or os.cpu_count() or 1, 0)
        output.result(asdict(found), *plan_parts(found))
        return
    if engine is EngineName.local and not exists(join(folder, "manifest.json")):  # else there may be nothing to do
        prepare(workers)
    for sentence in advice_on(checked):
        output.progress.say(sentence)
    with noting(run, "corpus", named), open_engine(engine, workers, runner_options, output.progress) as opened:
        manifest = run_corpus(checked, folder, opened, output.progress)
        ran = what_ran(opened)
    advice = advice_on_corpus(manifest, folder)
    output.result({**closing_facts(manifest, folder, ran), "advice": advice}, *closing_parts(manifest, folder, ran))
    output.remark(check_corpus(folder, hashes=False)[1])
    for sentence in advice:
        output.remark(f"note: {sentence}")


@app.command()
def plan(
    recipe: Recipe = None,
    run: Run = "runs/sample",
    workers: Workers = None,
    seconds: Seconds = 10.0,
    limit: Limit = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Show what `run` would do: inputs, tasks, what is done already; and predict time and disk from a sample."""
    checked = load_corpus_recipe(recipe_for(run, "corpus", recipe))
    if limit is not None:
        checked = with_limit(checked, limit)
    found = plan_corpus(checked, join(run, "corpus"), workers or os.cpu_count() or 1, seconds)
    Output(quiet, json).result(asdict(found), *plan_parts(found))


@app.command()
def remember(
    to: To,
    recipe: Recipe = None,
    run: Run = "runs/sample",
    workers: Workers = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write what later corpora need to leave out what is in this one: their recipes name it in `against`."""
    output = Output(quiet, json)
    named = recipe_for(run, "corpus", recipe)
    stages = [entry.made for entry in load_corpus_recipe(named).stages if isinstance(entry.made, Rememberable)]
    if not stages:
        raise RecipeError("no stage of this recipe can remember its documents.", where=named,
                          hint="exact_duplicates and near_duplicates can.")
    with LocalEngine(workers, output.progress) as engine:
        folders = list(write_reference(list({stage.name: stage for stage in stages}.values()), join(run, "corpus"), to,
                                       engine))
    output.result({"folders": folders}, *(f"remembered: {folder}" for folder in folders))


@app.command()
def verify(run: Run = "runs/sample", quiet: Quiet = False, json: Json = False) -> None:
    """Check a corpus: files and sums as in its manifest, and a kept twin for each duplicate that was dropped."""
    facts, sentence = check_corpus(join(run, "corpus"), hashes=True)
    Output(quiet, json).result(facts, sentence)


@app.command()
def review(
    run: Run = "runs/sample", examples: Examples = 12, seed: Seed = 0, quiet: Quiet = False, json: Json = False
) -> None:
    """Write RUN/corpus/contamination.html: which evaluation items were found where, and hits to judge by eye."""
    page = write_review(join(run, "corpus"), examples=examples, seed=seed)
    Output(quiet, json).result({"page": page}, f"review: {page}")


@app.command()
def report(run: Run = "runs/sample", quiet: Quiet = False, json: Json = False) -> None:
    """Write RUN/report.html from whatever steps have finished in a run folder."""
    page = write_report(run)
    Output(quiet, json).result({"page": page}, f"report: {page}")


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
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write RUN/corpus/README.md for people, croissant.json for programs, and the ledger licenses.csv."""
    files = list(write_card(join(run, "corpus"), name, url=url, description=description))
    Output(quiet, json).result({"files": files}, *(f"card: {path}" for path in files))


@app.command()
def explain(id: Id, run: Run = "runs/sample", quiet: Quiet = False, json: Json = False) -> None:
    """Tell what became of a document: its measures and limits, its verdict, and what caused it."""
    found = explain_document(join(run, "corpus"), id)
    Output(quiet, json).result([asdict(entry) for entry in found], "\n\n".join(map(as_text, found)))


@app.command()
def remove(
    run: Run = "runs/sample",
    ids: Names = None,
    urls: Names = None,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Take documents out of a finished corpus, and out of all later runs in this folder."""
    if ids is None and urls is None:
        raise RecipeError("nothing was asked for.", hint="Name a file with one id or URL a line: --ids or --urls FILE.")
    done = remove_documents(
        join(run, "corpus"), ids=read_names(ids) if ids else (), urls=read_names(urls) if urls else (), dry_run=dry_run)
    were, lost = ("would be", "would lose") if dry_run else ("were", "lost")
    parts = [f"{done.documents} documents {were} removed, {done.rejected} rejected ones {lost} their text."]
    if done.unknown:
        more = f" and {len(done.unknown) - 5} more" if len(done.unknown) > 5 else ""
        parts.append(f"not in this corpus: {', '.join(done.unknown[:5])}{more}.")
    Output(quiet, json).result({**asdict(done), "dry_run": dry_run}, *parts)


@app.command(name="language-model")
def language_model(
    language: Annotated[str, typer.Argument(help="Code of the language.")],
    to: Annotated[str, typer.Option(help="Folder for the models.")],
    run: Run = "runs/sample",
    pieces: Annotated[int, typer.Option(help="Pieces of the SentencePiece model.")] = 65_536,
    order: Annotated[int, typer.Option(help="Length of the longest n-grams.")] = 5,
    megabytes: Annotated[int, typer.Option(help="Text that the pieces are chosen by.")] = 100,
    lmplz: Annotated[str, typer.Option(help="KenLM's estimator: a name on the PATH, or a path.")] = "lmplz",
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train SentencePiece and KenLM models of a language on a corpus, for the stage roots_perplexity."""
    made = make_models(run, language, to, Settings(pieces, order, megabytes, lmplz=lmplz))
    parts = [f"{made.documents} documents: {made.sentencepiece}, {made.kenlm}"]
    if made.perplexities:
        parts.append("perplexity of documents held back: "
                     + ", ".join(f"{share:.0%} below {value}" for share, value in made.perplexities.items()))
    Output(quiet, json).result(asdict(made), *parts)


add_schema_command(app, "corpus", corpus_schema)


def main() -> None:
    """The command line, for `python -m` and for the script that comes with the package."""
    run_app(app)


if __name__ == "__main__":
    main()
