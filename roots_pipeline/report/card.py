"""The card of a corpus: what a person and the Hugging Face Hub need to know of it before they use it.

    python -m roots_pipeline card --run RUN --name ORGANISATION/NAME

In: a finished corpus. Out, beside its manifest: `README.md` (Markdown with the Hub's YAML header), `croissant.json`
(Croissant 1.1) and `licenses.csv` (the ledger of licences by source). The folder is then a data set that
`datasets.load_dataset` loads and that can be pushed as it is.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

import orjson
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from roots_pipeline.core.errors import EmptyOutputError, RecipeError
from roots_pipeline.core.manifest import Manifest, check_files, read_manifest
from roots_pipeline.core.storage import join, write_bytes
from roots_pipeline.report import numbers
from roots_pipeline.report.croissant import croissant
from roots_pipeline.report.licences import LicenceEntry, licence_ledger
from roots_pipeline.report.reading import parquet_files
from roots_pipeline.report.safe_text import plain

_TEMPLATES = Path(__file__).parent / "templates"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~])")
# The Hub's classes of size; the last one is open.
_SIZES = ((1e3, "n<1K"), (1e4, "1K<n<10K"), (1e5, "10K<n<100K"), (1e6, "100K<n<1M"), (1e7, "1M<n<10M"),
          (1e8, "10M<n<100M"), (1e9, "100M<n<1B"), (1e10, "1B<n<10B"), (1e11, "10B<n<100B"), (1e12, "100B<n<1T"))
# Licences that the Hub knows by their name in lower case; everything else is `other` there.
_HUB_LICENCES = re.compile(
    r"apache-2\.0|mit|bsd(-[23]-clause)?|cc0-1\.0|cc-by(-nc)?(-sa|-nd)?-[234]\.0|odc-by|odbl|pddl|unlicense"
    r"|[al]?gpl-[23]\.[01]"
)


def write_card(folder: str, name: str, *, url: str | None = None, description: str | None = None) -> list[str]:
    """Write the three files; returns their paths.

    Raises StaleDataError (no finished corpus), EmptyOutputError (nothing was kept), RecipeError (no usable name).
    """
    if not _NAME.fullmatch(name):
        raise RecipeError(f"'{plain(name)}' cannot be the name of a data set.",
                          hint="Use NAME or ORGANISATION/NAME of letters, digits, '-', '_' and '.'.")
    manifest = read_manifest(folder, made_by="python -m roots_pipeline run")
    check_files(folder, manifest)
    schema = next((file.schema_arrow for file in parquet_files(join(folder, "documents"))), None)
    if not manifest.counts["kept"] or schema is None:
        raise EmptyOutputError("this corpus kept no document: there is nothing to describe.", where=folder)
    ledger = licence_ledger(folder)
    described = description or f"Text in {len(_languages(manifest))} languages, made by Rootbloom from " \
                               f"{len(manifest.config['sources'])} sources."
    address = url or f"https://huggingface.co/datasets/{name}"
    day = datetime.now(UTC).date().isoformat()
    machine = croissant(
        name.rpartition("/")[2], description=described, url=address, published=day,
        licences=sorted({entry.licence for entry in ledger if entry.licence}),
        version=_version(manifest), schema=schema,
    )
    written = {
        "README.md": _readme(manifest, name, described, ledger).encode(),
        "croissant.json": orjson.dumps(machine, option=orjson.OPT_INDENT_2),
        "licenses.csv": _csv(ledger).encode(),
    }
    for file, data in written.items():
        write_bytes(join(folder, file), data)
    return [join(folder, file) for file in written]


def _readme(manifest: Manifest, name: str, description: str, ledger: list[LicenceEntry]) -> str:
    kept: Counter[tuple[str, str]] = Counter()
    sizes: Counter[tuple[str, str]] = Counter()
    dropped: Counter[str] = Counter()
    for source, language, verdict, documents, size in manifest.counts["by_source_language_verdict"]:
        if verdict:
            dropped[verdict] += documents
        else:
            kept[source, language] += documents
            sizes[source, language] += size
    licences = {entry.licence for entry in ledger}
    head = {
        "pretty_name": name.rpartition("/")[2],
        "language": _languages(manifest),
        "license": _hub_licences(licences),
        "size_categories": [_size_class(manifest.counts["kept"])],
        "task_categories": ["text-generation"],
        "tags": ["rootbloom"],
        "configs": [{"config_name": "default", "data_files": [{"split": "train", "path": "documents/*.parquet"}]}],
    }
    environment = Environment(loader=FileSystemLoader(_TEMPLATES), autoescape=False, undefined=StrictUndefined,
                              trim_blocks=True, lstrip_blocks=True, finalize=_markdown)
    environment.filters.update(count=numbers.count, size=numbers.size)
    text = environment.get_template("card.md.j2").render(
        name=name, description=description, manifest=manifest, counts=manifest.counts, ledger=ledger,
        groups=[(*key, kept[key], sizes[key]) for key in sorted(kept)], dropped=dropped.most_common(),
        stages=[(stage["stage"], stage["groups"], _settings(stage)) for stage in manifest.config["stages"]],
    )
    return f"---\n{yaml.safe_dump(head, allow_unicode=True, sort_keys=False)}---\n{text}"


def _markdown(value: object) -> object:
    """What every `{{ … }}` passes: one line, hidden characters visible, no sign that Markdown or HTML takes for its."""
    return _SPECIAL.sub(r"\\\1", escape(plain(value, 500), quote=False)) if isinstance(value, str) else value


def _settings(stage: dict[str, Any]) -> str:
    """The settings of a stage in a few words; lists by language are only counted."""
    told = []
    for key, value in stage.items():
        if key in ("stage", "groups", "version") or value in (None, [], {}, ""):
            continue
        told.append(f"{key}: {len(value)} entries" if isinstance(value, dict | list) else f"{key}: {value}")
    return ", ".join(told)


def _languages(manifest: Manifest) -> list[str]:
    """Codes of human languages with kept documents, as the Hub writes them."""
    code = {source["name"] for source in manifest.config["sources"] if source["kind"] == "code"}
    found = {language for source, language, verdict, _, _ in manifest.counts["by_source_language_verdict"]
             if not verdict and source not in code}
    return sorted({"zh" if language == "zht" else language for language in found
                   if re.fullmatch(r"[a-z]{2,3}", language)})


def _hub_licences(licences: set[str | None]) -> str | list[str]:
    known = sorted({licence.lower() for licence in licences
                    if licence and _HUB_LICENCES.fullmatch(licence.lower())})
    every = known + (["other"] if any(not licence or licence.lower() not in known for licence in licences) else [])
    return every[0] if len(every) == 1 else every


def _size_class(documents: int) -> str:
    return next((name for limit, name in _SIZES if documents < limit), "n>1T")


def _version(manifest: Manifest) -> str:
    """A version that changes with the documents: Croissant asks for three numbers."""
    return f"1.0.0+{manifest.fingerprint[:12]}"


def _csv(ledger: list[LicenceEntry]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["source", "license", "documents", "with_url"])
    for entry in ledger:
        cells = [entry.source, entry.licence or "", entry.documents, entry.with_url]
        writer.writerow([_no_formula(cell) if isinstance(cell, str) else cell for cell in cells])
    return out.getvalue()


def _no_formula(cell: str) -> str:
    """Spreadsheets run what begins like a formula; licences come from strangers."""
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell
