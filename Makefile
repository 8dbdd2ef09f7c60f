# Rootbloom: from raw text to a trained BLOOM.
#   make corpus tokenizer train      the whole chain on the embedded sample (sets everything up first)
#   make help                        all targets

RECIPE ?=
RUN ?= runs/sample
WORKERS ?=
PROCESSES ?= 1
EXPERIMENT ?= sample
PROMPT ?= The old mill
TASKS ?= sample
PYTHON ?= python3

BIN := .venv/bin
READY := .venv/.ready
options = $(if $(RECIPE),--recipe $(RECIPE)) --run $(RUN)
workers = $(if $(WORKERS),--workers $(WORKERS))

.PHONY: help setup corpus tokenizer mixture sweep train report generate docs site check lint types test bench faults layouts clean
.PHONY: test-models test-corpus
.DEFAULT_GOAL := help

help:  ## List the targets
	@echo "make TARGET [RECIPE=name-or-file.yaml] [RUN=folder] [WORKERS=n] [PROCESSES=n]"
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  \1|\2/' | column -t -s '|'

setup: $(READY)  ## Create .venv from requirements.lock and compile the kernels (done by every other target when needed)

$(READY): requirements.lock pyproject.toml
	@PYTHON="$(PYTHON)" bash .ci/setup

corpus: $(READY)  ## Raw text to RUN/corpus
	$(BIN)/python -m roots_pipeline run $(options) $(workers)
	@$(BIN)/python -m roots_pipeline report --run $(RUN)

tokenizer: $(READY)  ## RUN/corpus to RUN/tokenizer
	$(BIN)/python -m tokenizer train $(options) $(workers)
	@$(BIN)/python -m roots_pipeline report --run $(RUN)

mixture: $(READY)  ## RUN/corpus and RUN/tokenizer to RUN/mixture
	$(BIN)/python -m mixtures write $(options) $(workers)
	@$(BIN)/python -m roots_pipeline report --run $(RUN)

sweep: mixture  ## Train proxies of EXPERIMENT's mixture weights, fit their losses, propose and try out weights
	$(BIN)/python -m mixtures sweep --experiment $(EXPERIMENT) --run $(RUN)
	$(BIN)/python -m mixtures fit --experiment $(EXPERIMENT) --run $(RUN) --confirm

train: mixture  ## RUN/mixture to RUN/model (writes the mixture first); TASKS are what it is scored on
	$(BIN)/python -m train run $(options) --processes $(PROCESSES)
	$(if $(TASKS),$(BIN)/python -m train evaluate $(TASKS) --run $(RUN))
	$(BIN)/python -m train generate --run $(RUN) --prompt "$(PROMPT)"
	@$(BIN)/python -m roots_pipeline report --run $(RUN)

generate: $(READY)  ## Print a continuation of PROMPT by RUN/model
	$(BIN)/python -m train generate --run $(RUN) --prompt "$(PROMPT)"

report: $(READY)  ## Write RUN/report.html from whatever is in RUN
	$(BIN)/python -m roots_pipeline report --run $(RUN)

docs: $(READY)  ## Write docs/recipe.schema.json and docs/recipes.md anew from the classes that check recipes
	@for package in roots_pipeline tokenizer mixtures train; do \
		$(BIN)/python -m $$package schema --into docs/recipe.schema.json || exit 1; done
	@$(BIN)/python -m roots_pipeline.core.reference docs/recipe.schema.json > docs/recipes.md

site: $(READY)  ## The guides of docs/ as a web site in build/site, to be read without a network
	$(BIN)/python -m sphinx -W --keep-going -q docs build/site
	@echo "site: build/site/index.html"

lint: $(READY)  ## Style (ruff)
	$(BIN)/ruff check .

types: $(READY)  ## Types (mypy --strict)
	$(BIN)/mypy

check: lint types  ## Style and types

test: $(READY)  ## The test suite: training and what is beside it on one core, everything else on another
	@OMP_NUM_THREADS=1 $(MAKE) --no-print-directory -j2 --output-sync=target test-models test-corpus

# Tests of training start many processes and keep their files open, so they have a pytest of their own.
BESIDE := tests/mixtures tests/tokenizer tests/rules tests/text

test-models: $(READY)
	$(BIN)/python -m pytest tests/train
	$(BIN)/python -m pytest $(BESIDE)

test-corpus: $(READY)
	$(BIN)/python -m pytest --ignore=tests/train $(BESIDE:%=--ignore=%)

bench: $(READY)  ## Side by side with peers, in CPU time (needs a folder of real text; minutes)
	$(BIN)/python -m benchmarks

faults: $(READY)  ## Kill runs, fill disks, damage files; compare the bytes with an undisturbed run (minutes)
	$(BIN)/python -m tests.faults

layouts: $(READY)  ## Train tiny models in seven layouts of up to eight processes and compare (minutes)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.train.layouts runs/layouts

clean:  ## Remove runs and the environment
	rm -rf .venv runs
