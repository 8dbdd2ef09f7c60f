"""Carry the removal of documents from a corpus into its mixture, without encoding anything again.

    python -m roots_pipeline remove --ids FILE --run RUN      takes documents out of the corpus
    python -m mixtures remove --run RUN [--mask]              takes them out of .bin, .idx, tables, manifest and lock

A document of the mixture that its corpus no longer holds is removed; `patch` tells the two ways. `removed.json` in
the mixture folder keeps, for every document taken out, its span and the training samples that had read it.

Steps, so that being killed anywhere does no harm: new files are written beside the old ones (`.work/removal`), a
journal is committed, the files are moved to their places, the summary of the `write` step is noted, and that step
writes lock and manifest. With a journal the next call only finishes; without one it begins anew.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mixtures.config import MixtureRecipe
from mixtures.files import Inputs, document_files, note_files, read_inputs
from mixtures.foreign import is_foreign
from mixtures.indexed import IndexedReader
from mixtures.lineage import Horizon, Place, find_documents, horizon_of, samples_of
from mixtures.lock import NAME, SUFFIXES, Lock, check_files, read_lock
from mixtures.patch import Way, masked_id, patch_group
from mixtures.tokenise import group_names, read_documents
from mixtures.write import write_mixture
from roots_pipeline.core.errors import EmptyOutputError, StaleDataError, TokenizerError
from roots_pipeline.core.manifest import read_manifest
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.storage import exists, join, lock_folder, read_json, remove_file, sweep_temporaries, write_json
from roots_pipeline.core.tasks import Engine
from tokenizer.encode import Encoder

MASK = "<pad>"
_AGAIN = "Run `python -m mixtures write` instead; it encodes the corpus as it is now."


@dataclass(frozen=True, slots=True)
class Removed:
    """What was taken out, for each document the training samples that had read it, and which samples were asked."""

    places: list[Place]
    samples: list[list[int]]
    horizon: Horizon


def remove_documents(
    run: str, way: Way, engine: Engine, progress: Progress, *, samples: int | None = None,
    sequence_length: int | None = None,
) -> Removed:
    """Take out of RUN/mixture what RUN/corpus no longer holds.

    Raises StaleDataError if there is no finished mixture, its files are not those of its lock, or the corpus differs
    by more than removals; EmptyOutputError if nothing would be left.
    """  # fmt: skip
    folder = join(run, "mixture")
    manifest = read_manifest(folder, made_by="python -m mixtures write")
    recipe = MixtureRecipe.model_validate(manifest.config)
    journal = join(folder, ".work", "removal.json")
    with lock_folder(folder):
        sweep_temporaries(folder)
        inputs = read_inputs(run)
        plan = _begun(journal, inputs)
        if plan is None:
            lock = read_lock(join(folder, NAME))
            plan = _prepare(lock, inputs, folder, way, horizon_of(lock, run, samples, sequence_length))
            write_json(journal, plan)
        _finish(plan, folder, inputs)
    write_mixture(recipe, run, engine, progress)
    remove_file(journal)
    places = [Place(**row) for row in plan["places"]]
    return Removed(places, plan["samples"], Horizon(**plan["horizon"]))


def _begun(journal: str, inputs: Inputs) -> dict[str, Any] | None:
    """The journal of a call that was stopped after all its files were written."""
    if not exists(journal):
        return None
    plan: dict[str, Any] = read_json(journal)
    return plan if plan["corpus"] == inputs.corpus.fingerprint else None


def _prepare(lock: Lock, inputs: Inputs, folder: str, way: Way, horizon: Horizon) -> dict[str, Any]:
    """Find the documents, write the new files beside the old ones, and say what is left to do."""
    if lock.tokenizer != inputs.tokenizer.fingerprint:
        raise StaleDataError("the mixture was made with another tokenizer.", where=folder, hint=_AGAIN)
    check_files(lock, folder)
    encoder = Encoder.from_file(inputs.tokenizer_path)
    if way == "mask" and MASK not in encoder.special_ids:
        hint = "Remove without --mask."
        raise TokenizerError(f"the tokenizer has no {MASK} to mask with.", where=inputs.tokenizer_path, hint=hint)
    left = _corpus_ids(inputs)
    ours = {name: group for name, group in lock.groups.items() if not is_foreign(join(folder, group.file))}
    gone = {name: _missing(name, join(folder, group.file), left.get(name)) for name, group in ours.items()}
    strangers = sorted(set(left) - set(ours))
    if strangers:
        raise StaleDataError(f"the corpus has a group '{strangers[0]}' that is not in the mixture.", hint=_AGAIN)
    if not any(left.values()):
        hint = "Delete the folder if that is meant."
        raise EmptyOutputError("no document would be left in the mixture.", where=folder, hint=hint)
    _check_kept(inputs, lock, folder, encoder)
    taken = {name: {sequence for _, sequence in rows} for name, rows in gone.items()}
    ids = [id for rows in gone.values() for id, _ in rows]
    places = [place for place in find_documents(lock, folder, ids) if place.sequence in taken[place.group]]
    samples = samples_of(places, folder, horizon)
    groups: dict[str, Any] = {}
    shutil.rmtree(_staging(folder), ignore_errors=True)
    for name, group in ours.items():
        facts = {"documents": group.documents, "tokens": group.tokens,
                 "files": {suffix: asdict(entry) for suffix, entry in group.files.items()}}  # fmt: skip
        sequences = [sequence for _, sequence in gone[name]]
        if sequences and (way == "mask" or left.get(name)):
            target = join(_staging(folder), group.file)
            facts = patch_group(join(folder, group.file), target, sequences, way, encoder.special_ids.get(MASK, 0))
        if way == "mask" or left.get(name):
            groups[name] = facts
    return {
        "corpus": inputs.corpus.fingerprint, "way": way, "groups": groups, "horizon": asdict(horizon),
        "places": [asdict(place) for place in places], "samples": samples, "mixture": lock.fingerprint,
        "moves": [group.file + suffix for name, group in ours.items() if gone[name] and name in groups
                  for suffix in SUFFIXES],
    }  # fmt: skip


def _staging(folder: str) -> str:
    return join(folder, ".work", "removal")


def _corpus_ids(inputs: Inputs) -> dict[str, list[pa.Array]]:
    """Ids of the documents of each group, in the order of the corpus."""
    found: dict[str, list[pa.Array]] = {}
    for name in document_files(inputs):
        for batch in read_documents(join(inputs.corpus_folder, name), ["id", "source", "language"]):
            names = group_names(batch)
            for group in pc.unique(names).to_pylist():
                found.setdefault(group, []).append(batch.column("id").filter(pc.equal(names, group)))
    return found


def _missing(name: str, prefix: str, left: list[pa.Array] | None) -> list[tuple[str, int]]:
    """Id and sequence of the documents of a group that the corpus no longer holds, but for those masked before."""
    table = pq.read_table(f"{prefix}.documents.parquet", columns=["id", "sequence"])
    here = pa.chunked_array(left or [], pa.string())
    stays = pc.is_in(table.column("id"), here.combine_chunks()) if len(here) else pa.array([False] * len(table))
    if table.filter(stays).column("id").to_pylist() != here.to_pylist():
        raise StaleDataError(
            f"the corpus holds other documents of {name} than the mixture, or in another order.", hint=_AGAIN
        )
    rows = table.filter(pc.invert(stays)).to_pylist()
    return [(row["id"], row["sequence"]) for row in rows if row["id"] != masked_id(row["sequence"])]


def _check_kept(inputs: Inputs, lock: Lock, folder: str, encoder: Encoder) -> None:
    """Encode the first document of every corpus file anew: another text under the same id is no removal."""
    for name in document_files(inputs):
        path = join(inputs.corpus_folder, name)
        first = next(read_documents(path, ["id", "text", "source", "language"]), None)
        if first is None:
            continue
        row = first.slice(0, 1)
        ids, _ = encoder.encode_column(row.column("text"), append_eos=True)
        group = group_names(row)[0].as_py()
        places = find_documents(lock, folder, row.column("id").to_pylist(), [group])
        reader = IndexedReader(join(folder, lock.groups[group].file))
        if not any(reader[place.sequence].tolist() == ids.tolist() for place in places):
            raise StaleDataError(
                f"document {row.column('id')[0].as_py()} has another text than in the mixture.", where=path, hint=_AGAIN
            )


def _finish(plan: Mapping[str, Any], folder: str, inputs: Inputs) -> None:
    for name in plan["moves"]:
        staged = join(_staging(folder), name)
        if os.path.exists(staged):  # else a call that was stopped has moved it
            os.replace(staged, join(folder, name))
    note_files(inputs, folder, plan["groups"])
    _note_removed(plan, join(folder, "removed.json"))
    for leftover in (_staging(folder), join(folder, ".work", "pieces")):  # pieces hold the tokens, too
        shutil.rmtree(leftover, ignore_errors=True)


def _note_removed(plan: Mapping[str, Any], path: str) -> None:
    """Add to the list of everything ever taken out; the same removal is noted once."""
    known: list[dict[str, Any]] = read_json(path) if exists(path) else []
    entry = {
        "from": plan["mixture"], "way": plan["way"], "samples_looked_at": plan["horizon"],
        "documents": [{**place, "samples": numbers}
                      for place, numbers in zip(plan["places"], plan["samples"], strict=True)],
    }  # fmt: skip
    if plan["places"] and entry not in known:
        write_json(path, [*known, entry])
