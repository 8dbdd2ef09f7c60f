"""Commands of the training package: `python -m train COMMAND`.

Examples:

    python -m train run --recipe sample --run runs/sample
    python -m train run --recipe sample --run runs/sample --processes 2
    torchrun --nnodes 48 --nproc-per-node 8 ... -m train run --recipe bloom-176b --run /shared/bloom
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roots_pipeline.core.cli import add_schema_command, new_app, run_app
from roots_pipeline.core.options import DryRun, Json, Quiet, Recipe
from roots_pipeline.core.output import Output, closing_table
from roots_pipeline.core.recipe_note import noted_recipe, noting, recipe_for
from roots_pipeline.core.schema import Schema
from train.planner.commands import plan, simulate

if TYPE_CHECKING:
    from train.job import Job

app = new_app("From a mixture to a trained model: RUN/mixture in, RUN/model out.")
RunFolder = Annotated[Path, typer.Option("--run", help="Folder of the run.")]
_DEFAULT = Path("runs/sample")


@app.command()
def run(
    folder: RunFolder = _DEFAULT,
    recipe: Recipe = None,
    processes: Annotated[int, typer.Option(min=1, help="Processes to start here; one per GPU, or 1 on a CPU.")] = 1,
    stop_after: Annotated[
        int | None, typer.Option(min=1, help="Save and stop after so many steps of this call.")
    ] = None,
    exit_minutes: Annotated[
        float | None, typer.Option(min=0, help="Save and stop after so many minutes of this call.")
    ] = None,
    restarts: Annotated[int, typer.Option(min=0, help="Start failed processes again so many times.")] = 0,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train, continuing from the newest complete checkpoint."""
    from roots_pipeline.core.storage import lock_folder
    from train.job import is_finished, plan, work
    from train.launch import is_worker, run_workers, share_processor, world_size

    share_processor()
    recipe = recipe_for(str(folder), "model", recipe)
    output = Output(quiet, json)
    progress = output.progress
    if is_worker():
        work(plan(recipe, folder, world_size()), progress, stop_after, exit_minutes)
        return
    job = plan(recipe, folder, processes)
    if dry_run:
        _tell(output, job, "would be trained")
        return
    if is_finished(job, progress.say):
        progress.say("This run has already finished; nothing to do.")
        _tell(output, job, "model")
        return
    if job.kill_switch.exists():
        progress.say(f"{job.kill_switch} exists, so nothing was trained. Delete it and run this again to go on.")
        return
    with noting(str(folder), "model", recipe), lock_folder(str(job.folder)):
        if processes == 1:
            work(job, progress, stop_after, exit_minutes)
            _tell(output, job, "model")
            return
        job.sources()  # builds the index arrays once, not once per process
        command = ["train", "run", "--recipe", recipe, "--run", str(folder)]
        command += ["--stop-after", str(stop_after)] if stop_after else []
        command += ["--exit-minutes", str(exit_minutes)] if exit_minutes is not None else []
        code = run_workers(processes, command + ["--quiet"] * quiet, restarts=restarts)
    if code:
        raise typer.Exit(code)
    _tell(output, job, "model")


def _tell(output: Output, job: Job, title: str) -> None:
    """How far a run is, and where; with `--quiet` only for programs."""
    from train.saved import newest_complete

    saved = newest_complete(job.checkpoints, lambda _: None, hashes=False)
    facts = {
        "trained steps": saved.step if saved else 0, "steps": job.steps, "samples": job.config.train_samples,
        "tokens": job.config.train_samples * job.config.sequence_length, "layout": str(job.layout),
        "checkpoints": str(job.checkpoints), "log": str(job.folder / "log.jsonl"),
    }  # fmt: skip
    output.result(
        {name.replace(" ", "_"): value for name, value in facts.items()},
        *([] if output.quiet else [closing_table(title, facts)]),
    )


Step = Annotated[int | None, typer.Option(min=0, help="Use the checkpoint of this step; default: the newest.")]


@app.command()
def export(
    folder: RunFolder = _DEFAULT,
    strip_padding: Annotated[bool, typer.Option(help="Leave out the embedding rows that stand for no token.")] = False,
    step: Step = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write the newest checkpoint as a Hugging Face model to RUN/model/export."""
    from train.export import check_tokenizer
    from train.export import export as write
    from train.saved import saved_to_use

    saved = saved_to_use(folder / "model" / "checkpoints", step)
    check_tokenizer(saved, folder / "tokenizer")
    target = write(saved, folder / "tokenizer", folder / "model" / "export", strip_padding=strip_padding)
    output, facts = Output(quiet, json), {"step": saved.step, "folder": str(target)}
    output.progress.say(f"Exported step {saved.step} to {target}.", **facts)
    output.result(facts)


@app.command()
def generate(
    folder: RunFolder = _DEFAULT,
    prompt: Annotated[str, typer.Option(help="Text to continue; empty: a new document.")] = "",
    tokens: Annotated[int, typer.Option(help="New tokens at most.")] = 64,
    temperature: Annotated[float, typer.Option(help="0: always the likeliest token.")] = 0.8,
    top_p: Annotated[float, typer.Option(help="Sample from the likeliest tokens that hold this share.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Another seed samples another text.")] = 0,
    step: Step = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Continue a prompt with the newest checkpoint (exported first if it is not yet); the report shows it too."""
    from roots_pipeline.core.storage import write_json
    from train.export import check_tokenizer, ensure_exported
    from train.generate import generate as continue_prompt
    from train.saved import saved_to_use

    saved = saved_to_use(folder / "model" / "checkpoints", step)
    check_tokenizer(saved, folder / "tokenizer")
    target = folder / "model" / "export"
    output = Output(quiet, json)
    ensure_exported(saved, folder / "tokenizer", target, output.progress.say)
    text = continue_prompt(target, prompt, tokens=tokens, temperature=temperature, top_p=top_p, seed=seed)
    facts = {"prompt": prompt, "text": text}
    write_json(str(folder / "model" / "generated.json"), facts)
    output.result(facts, prompt + text)


@app.command("import")
def import_(
    source: Annotated[Path, typer.Argument(help="Folder with config.json and safetensors of a BLOOM.")],
    folder: RunFolder = _DEFAULT,
    recipe: Recipe = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Begin a run with the weights of a Hugging Face model instead of random ones."""
    from roots_pipeline.core.storage import lock_folder
    from train.import_weights import import_weights
    from train.job import plan

    job = plan(recipe_for(str(folder), "model", recipe), folder, None)
    with lock_folder(str(job.folder)):
        import_weights(source, job)
    output = Output(quiet, json)
    output.progress.say(f"The run in {folder} begins with the weights of {source}; continue with `train run`.")
    output.result({"run": str(folder), "source": str(source)})


@app.command()
def convert(
    folder: RunFolder = _DEFAULT,
    tensor_parallel: Annotated[int, typer.Option(min=1, help="Check that the model can be cut so.")] = 1,
    pipeline_parallel: Annotated[int, typer.Option(min=1, help="Check that the model can be cut so.")] = 1,
    data_parallel: Annotated[int, typer.Option(min=1, help="Check that a batch can be shared so.")] = 1,
    step: Step = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write a checkpoint in a form without layout: whole parameters, safetensors. Runs continue from it anywhere."""
    from roots_pipeline.core.storage import lock_folder
    from train.convert import check_layout
    from train.convert import convert as write
    from train.parallel.layout import Layout
    from train.saved import saved_to_use

    saved = saved_to_use(folder / "model" / "checkpoints", step)
    layout = Layout(data_parallel, tensor_parallel, pipeline_parallel)
    check_layout(saved, layout)
    with lock_folder(str(folder / "model")):
        target = write(saved).folder
    output = Output(quiet, json)
    output.progress.say(
        f"Step {saved.step} can be continued in any layout from {target}; for {layout} set train.tensor_parallel "
        f"{tensor_parallel}, train.pipeline_parallel {pipeline_parallel} and start {layout.processes} processes.",
        folder=str(target),
    )
    output.result({"step": saved.step, "folder": str(target), "processes": layout.processes})


@app.command()
def slurm(
    folder: RunFolder = _DEFAULT,
    recipe: Recipe = None,
    nodes: Annotated[int, typer.Option(min=1, help="Nodes.")] = 1,
    gpus: Annotated[int, typer.Option(min=1, help="GPUs of each node.")] = 8,
    cpus: Annotated[int, typer.Option(min=1, help="CPU cores of each node.")] = 64,
    hours: Annotated[int, typer.Option(min=1, help="Limit of one allocation.")] = 20,
    account: Annotated[str, typer.Option(help="Whom Slurm charges.")] = "",
    partition: Annotated[str, typer.Option(help="Slurm's partition.")] = "",
    constraint: Annotated[str, typer.Option(help="Features the nodes must have, for example a100.")] = "",
    exclude: Annotated[str, typer.Option(help="Nodes to leave out.")] = "",
    spares: Annotated[int, typer.Option(min=0, help="Further nodes that wait for one to fail.")] = 0,
    python: Annotated[str, typer.Option(help="The Python of the nodes.")] = ".venv/bin/python",
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Print a script for sbatch that trains a recipe on one or many nodes, from this folder."""
    from roots_pipeline.core.recipe import load_section
    from train.config import RECIPES, TrainConfig
    from train.slurm import Cluster, slurm_script

    recipe = recipe_for(str(folder), "model", recipe)
    config = load_section(recipe, "train", TrainConfig, RECIPES)
    cluster = Cluster(nodes, gpus, cpus, hours, account, partition, constraint, exclude, spares)
    script = slurm_script(recipe, str(folder), config, cluster, folder=str(Path.cwd()), python=python)
    Output(quiet, json).result({"script": script}, script.removesuffix("\n"))


app.command()(plan)
app.command()(simulate)


@app.command()
def evaluate(
    tasks: Annotated[str, typer.Argument(help="YAML file that lists tasks (see docs/evaluation.md), or sample.")],
    folder: RunFolder = _DEFAULT,
    model: Annotated[Path | None, typer.Option(help="A BLOOM in Hugging Face's form instead of RUN's model.")] = None,
    length: Annotated[int, typer.Option(min=1, help="Tokens of a window of a text.")] = 2048,
    batch: Annotated[int, typer.Option(min=1, help="Continuations computed together.")] = 16,
    step: Step = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Score the newest checkpoint (exported first if it is not yet) on tasks from files; RUN/model/evaluation.json."""
    from roots_pipeline.core.storage import write_json
    from train.evaluation.contamination import Trained
    from train.evaluation.scores import as_text
    from train.evaluation.scores import evaluate as score
    from train.evaluation.tasks import find_tasks
    from train.export import check_tokenizer, ensure_exported, renew_card
    from train.saved import saved_to_use

    output, listed = Output(quiet, json), find_tasks(tasks)
    if model is None:
        saved = saved_to_use(folder / "model" / "checkpoints", step)
        check_tokenizer(saved, folder / "tokenizer")
        target = folder / "model" / "export"
        ensure_exported(saved, folder / "tokenizer", target, output.progress.say)
        results = score(target, listed, length, batch, Trained(folder, saved.origin))
        scores = {"step": saved.step, "checkpoint": saved.fingerprint(), "tasks": results}
        write_json(str(folder / "model" / "evaluation.json"), scores)
        renew_card(saved, target)
    else:
        results = score(model, listed, length, batch)
    output.result(results, as_text(results))


@app.command()
def explain(
    document: Annotated[str | None, typer.Argument(help="Id of a document: which steps read it?")] = None,
    folder: RunFolder = _DEFAULT,
    recipe: Recipe = None,
    step: Annotated[int | None, typer.Option(help="A step: which documents did it read?")] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Which documents a step was trained on, or which steps were trained on a document; one JSON object a line."""
    import orjson

    from roots_pipeline.core.errors import RecipeError
    from train.job import plan
    from train.lineage import documents_of_step, steps_of_document

    if (document is None) == (step is None):
        raise RecipeError("either the id of a document or --step is needed.", hint="For example --step 100.")
    job = plan(recipe or noted_recipe(str(folder), "model") or "sample", folder, None)
    rows = documents_of_step(job, step) if step is not None else steps_of_document(job, str(document))
    if not rows:
        raise RecipeError("the mixture has no such document.", hint="Ask `python -m mixtures explain` for it.")
    Output(quiet, json).result(list(rows), *(orjson.dumps(row).decode() for row in rows))


def _section() -> Schema:
    from train.recipe_schema import train_schema

    return train_schema()


add_schema_command(app, "train", _section)


def main() -> None:
    """The command line, for `python -m` and for the script that comes with the package."""
    run_app(app)


if __name__ == "__main__":
    main()
