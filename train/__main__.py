"""Commands of the training package: `python -m train run | generate | export`.

Examples:

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
    from train.saved import Saved

app = new_app("From a mixture to a trained model: RUN/mixture in, RUN/model out.")
RunFolder = Annotated[Path, typer.Option("--run", help="Folder of the run.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]
_DEFAULT = Path("runs/sample")


@app.command()
def run(
    folder: RunFolder = _DEFAULT,
    recipe: Annotated[str, typer.Option(help="Name of a built-in recipe or path of a YAML file.")] = "sample",
    processes: Annotated[int, typer.Option(min=1, help="Processes to start here; one per GPU, or 1 on a CPU.")] = 1,
    stop_after: Annotated[
        int | None, typer.Option(min=1, help="Save and stop after so many steps of this call.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Train, continuing from the newest complete checkpoint."""
    from roots_pipeline.core.storage import lock_folder
    from train.job import is_finished, plan, work
    from train.launch import is_worker, run_workers, share_processor, world_size

    share_processor()
    progress = Progress(quiet=quiet)
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
        command += ["--stop-after", str(stop_after)] if stop_after else []
        code = run_workers(processes, command + ["--quiet"] * quiet)
    if code:
        raise typer.Exit(code)


@app.command()
def export(
    folder: RunFolder = _DEFAULT,
    strip_padding: Annotated[bool, typer.Option(help="Leave out the embedding rows that stand for no token.")] = False,
    quiet: Quiet = False,
) -> None:
    """Write the newest checkpoint as a Hugging Face model to RUN/model/export."""
    from train.export import export as write

    progress = Progress(quiet=quiet)
    saved = _newest(folder, progress)
    target = write(saved, folder / "tokenizer", folder / "model" / "export", strip_padding=strip_padding)
    progress.say(f"Exported step {saved.step} to {target}.", step=saved.step, folder=str(target))


@app.command()
def generate(
    folder: RunFolder = _DEFAULT,
    prompt: Annotated[str, typer.Option(help="Text to continue; empty: a new document.")] = "",
    tokens: Annotated[int, typer.Option(min=1, help="New tokens at most.")] = 64,
    temperature: Annotated[float, typer.Option(min=0.0, help="0: always the likeliest token.")] = 0.8,
    top_p: Annotated[float, typer.Option(min=0.0, max=1.0, help="Sample from this share of the probability.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Another seed samples another text.")] = 0,
    quiet: Quiet = False,
) -> None:
    """Continue a prompt with the newest checkpoint (exported first if it is not yet)."""
    from train.export import ensure_exported
    from train.generate import generate as continue_prompt

    progress = Progress(quiet=quiet)
    target = folder / "model" / "export"
    ensure_exported(_newest(folder, progress), folder / "tokenizer", target)
    print(continue_prompt(target, prompt, tokens=tokens, temperature=temperature, top_p=top_p, seed=seed))


def _newest(folder: Path, progress: Progress) -> Saved:
    from train.saved import newest_complete

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
