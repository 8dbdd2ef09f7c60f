"""Commands of the training package: `python -m train run | generate | export`.

python -m train run --recipe sample --run runs/sample
python -m train run --recipe sample --run runs/sample --processes 2
torchrun --nnodes 48 --nproc-per-node 8 ... -m train run --recipe bloom-176b --run /shared/bloom
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roots_pipeline.core.cli import new_app, run_app
from roots_pipeline.core.errors import TrainingError
from roots_pipeline.core.progress import Progress

if TYPE_CHECKING:
    from train.checkpoint import Saved

app = new_app("From a mixture to a trained model: RUN/mixture in, RUN/model out.")
RunFolder = Annotated[Path, typer.Option("--run", help="Folder of the run.")]


@app.command()
def run(
    folder: RunFolder,
    recipe: Annotated[str, typer.Option(help="Name of a built-in recipe or path of a YAML file.")] = "sample",
    processes: Annotated[int, typer.Option(min=1, help="Processes to start here; one per GPU, or 1 on a CPU.")] = 1,
    stop_after: Annotated[
        int | None, typer.Option(min=1, help="Save and stop after so many steps of this call.")
    ] = None,
) -> None:
    """Train, continuing from the newest complete checkpoint."""
    from roots_pipeline.core.storage import lock_folder
    from train.job import is_finished, plan, work
    from train.launch import is_worker, run_workers, world_size

    progress = Progress()
    if is_worker():
        work(plan(recipe, folder, world_size()), progress, stop_after)
        return
    job = plan(recipe, folder, processes)
    if is_finished(job):
        progress.say("This run has already finished; nothing to do.")
        return
    with lock_folder(str(job.folder)):
        if processes == 1:
            work(job, progress, stop_after)
            return
        job.sources()  # builds the index arrays once, not once per process
        command = ["train", "run", "--recipe", recipe, "--run", str(folder)]
        code = run_workers(processes, command + (["--stop-after", str(stop_after)] if stop_after else []))
    if code:
        raise typer.Exit(code)


@app.command()
def export(
    folder: RunFolder,
    strip_padding: Annotated[bool, typer.Option(help="Leave out the embedding rows that stand for no token.")] = False,
) -> None:
    """Write the newest checkpoint as a Hugging Face model to RUN/model/export."""
    from train.export import export as write

    progress = Progress()
    saved = _newest(folder, progress)
    target = write(saved, folder / "tokenizer", folder / "model" / "export", strip_padding=strip_padding)
    progress.say(f"Exported step {saved.step} to {target}.", step=saved.step, folder=str(target))


@app.command()
def generate(
    folder: RunFolder,
    prompt: Annotated[str, typer.Option(help="Text to continue; empty: a new document.")] = "",
    tokens: Annotated[int, typer.Option(min=1, help="New tokens at most.")] = 64,
    temperature: Annotated[float, typer.Option(min=0.0, help="0: always the likeliest token.")] = 0.0,
    top_p: Annotated[float, typer.Option(min=0.0, max=1.0, help="Sample from this share of the probability.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Continue a prompt with the newest checkpoint (exported first if it is not yet)."""
    from roots_pipeline.core.errors import StaleDataError
    from roots_pipeline.core.manifest import read_manifest
    from train.export import export as write
    from train.export import export_fingerprint
    from train.generate import generate as continue_prompt

    progress, target = Progress(), folder / "model" / "export"
    saved = _newest(folder, progress)
    try:
        manifest = read_manifest(str(target))
        current = manifest.fingerprint == export_fingerprint(saved, bool(manifest.config["strip_padding"]))
    except StaleDataError:
        current = False
    if not current:
        write(saved, folder / "tokenizer", target)
    print(continue_prompt(target, prompt, tokens=tokens, temperature=temperature, top_p=top_p, seed=seed))


def _newest(folder: Path, progress: Progress) -> Saved:
    from train.checkpoint import newest_complete

    saved = newest_complete(folder / "model" / "checkpoints", progress.say)
    if saved is None:
        raise TrainingError(
            "there is no complete checkpoint here.",
            where=str(folder / "model" / "checkpoints"),
            hint="Run `python -m train run` first.",
        )
    return saved


if __name__ == "__main__":
    run_app(app)
