"""The commands `plan` and `simulate` of `python -m train`: questions asked before anything is rented."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roots_pipeline.core.options import Json, Quiet
from roots_pipeline.core.output import Output

Gpu = Annotated[str, typer.Option(help="Kind of GPU, one of train/hardware.yaml or of --hardware.")]
Vocabulary = Annotated[int, typer.Option(min=1, max=10**8, help="Rows of the embedding, padding included.")]
HardwareFile = Annotated[Path | None, typer.Option("--hardware", help="A file like train/hardware.yaml.")]
Mtbf = Annotated[float, typer.Option(min=1.0, max=1e7, help="Hours between failures of one node.")]


def plan(
    recipe: Annotated[str, typer.Argument(help="Name of a built-in recipe or path of a YAML file.")],
    gpus: Annotated[int, typer.Option(min=1, help="GPUs of the whole run.")] = 8,
    gpu: Gpu = "a100-80gb",
    vocabulary: Vocabulary = 250_880,
    hardware: HardwareFile = None,
    layouts: Annotated[int, typer.Option(min=1, help="Layouts to show.")] = 8,
    pue: Annotated[float, typer.Option(min=1.0, max=10.0, help="Power usage effectiveness of the building.")] = 1.2,
    grams_per_kwh: Annotated[float, typer.Option(min=0.0, max=1e4, help="Grams of CO2 a kWh.")] = 57.0,
    node_mtbf_hours: Mtbf = 8000.0,
    corpus_plan: Annotated[
        Path | None, typer.Option(help="Output of `roots_pipeline plan --json`: adds the corpus to the sheet.")
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """What training a recipe takes on some GPUs: memory, layouts, time, energy, checkpoints. Starts nothing."""
    from roots_pipeline.core.recipe import load_section
    from train.config import RECIPES, TrainConfig
    from train.planner.corpus import corpus_facts, corpus_text, read_corpus_plan
    from train.planner.costs import Assumptions
    from train.planner.hardware import BUILT_IN, load_hardware
    from train.planner.sheet import as_facts, as_text, plan_run

    config = load_section(recipe, "train", TrainConfig, RECIPES)
    assumed = Assumptions(pue=pue, grams_per_kwh=grams_per_kwh, node_mtbf_hours=node_mtbf_hours)
    corpus = read_corpus_plan(corpus_plan) if corpus_plan else None
    sheet = plan_run(config, vocabulary, gpus, load_hardware(gpu, hardware or BUILT_IN), assumed)
    facts = as_facts(sheet, layouts) | ({"corpus": corpus_facts(corpus)} if corpus else {})
    Output(quiet, json).result(facts, as_text(sheet, layouts), *(["\n" + corpus_text(corpus)] if corpus else []))


def simulate(
    recipe: Annotated[str, typer.Argument(help="Name of a built-in recipe or path of a YAML file.")],
    nodes: Annotated[
        list[int] | None, typer.Option(min=1, max=1_000_000, help="Nodes; may be given several times.")
    ] = None,
    spares: Annotated[int | None, typer.Option(min=0, max=1_000_000, help="Default: 99% of failures find one.")] = None,
    gpu: Gpu = "a100-80gb",
    vocabulary: Vocabulary = 250_880,
    hardware: HardwareFile = None,
    node_mtbf_hours: Mtbf = 8000.0,
    repair_hours: Annotated[float, typer.Option(min=0.0, max=1e5, help="Until a failed node is a spare one.")] = 24.0,
    restart_minutes: Annotated[float, typer.Option(min=0.0, max=1e5, help="From a failure to the first step.")] = 15.0,
    write_gbytes: Annotated[float, typer.Option(min=0.001, max=1e6, help="Of the shared disk, GB/s.")] = 60.0,
    save_minutes: Annotated[
        float | None, typer.Option(min=0.01, max=1e5, help="Of work between saves; default: Daly's best.")
    ] = None,
    days: Annotated[float, typer.Option(min=0.1, max=10_000, help="Of work, where no layout says how much.")] = 100.0,
    trials: Annotated[int, typer.Option(min=1, max=1000, help="Simulations of each size.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Another seed has other failures.")] = 0,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Play a run with failing nodes and spares, for clusters of several sizes: what is kept of the time (goodput)."""
    from roots_pipeline.core.recipe import load_section
    from train.config import RECIPES, TrainConfig
    from train.planner.costs import Assumptions
    from train.planner.goodput import Question, play, rows_as_facts, rows_as_text
    from train.planner.hardware import BUILT_IN, load_hardware

    config = load_section(recipe, "train", TrainConfig, RECIPES)
    assumed = Assumptions(node_mtbf_hours=node_mtbf_hours, restart_minutes=restart_minutes, write_gbytes=write_gbytes)
    asked = Question(spares, repair_hours, save_minutes, days, trials, seed)
    sizes = nodes or [10, 100, 1000, 10_000]
    rows = play(config, vocabulary, sizes, load_hardware(gpu, hardware or BUILT_IN), assumed, asked)
    Output(quiet, json).result(rows_as_facts(rows), rows_as_text(rows, config, vocabulary, assumed, asked))
