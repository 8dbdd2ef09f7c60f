"""RUN/corpus as facts: the funnel and the verdicts from the manifest's counts, the rest from its Parquet files."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from roots_pipeline.core.manifest import Manifest
from roots_pipeline.core.storage import join
from roots_pipeline.report.composition import collect_composition
from roots_pipeline.report.contamination import collect_contamination
from roots_pipeline.report.cuts import draw_cuts
from roots_pipeline.report.duplicates import draw_clusters
from roots_pipeline.report.examples import Kind, draw_examples
from roots_pipeline.report.facts import BadRecord, Corpus, FunnelRow, Quarantine, SourceVerdicts, VerdictRow
from roots_pipeline.report.histograms import count_measures
from roots_pipeline.report.limits import read_limits
from roots_pipeline.report.reading import TABLE_ROWS, batches, parquet_files, strings

# What the page shows at most: sources, verdicts of one source, and pairs of these with examples.
_SOURCES, _VERDICTS, _WITH_EXAMPLES = 60, 40, 150
_SHOWN_BAD = 50
_SHOWN_REASONS = 20

# source, language, verdict ('' = kept), documents, bytes
Count = tuple[str, str, str, int, int]


def collect_corpus(folder: str, manifest: Manifest) -> Corpus:
    """Everything the page says about RUN/corpus."""
    table: list[Count] = [
        (str(source), str(language), str(verdict), int(documents), int(size))
        for source, language, verdict, documents, size in manifest.counts["by_source_language_verdict"]
    ]
    counts = manifest.counts
    return Corpus(
        read=int(counts["read"]), kept=int(counts["kept"]), rejected=int(counts["rejected"]),
        bad_records=int(counts["bad_records"]), read_bytes=sum(row[4] for row in table),
        kept_bytes=int(counts["kept_bytes"]), by_source=_funnel(table, 0), by_language=_funnel(table, 1),
        verdicts=_verdicts(folder, manifest, table), measures=count_measures(folder, read_limits(manifest.config)),
        quarantine=_quarantine(join(folder, "quarantine")), duplicates=draw_clusters(folder),
        cuts=draw_cuts(folder, manifest), contamination=collect_contamination(folder, manifest),
        composition=collect_composition(manifest, table),
    )


def _funnel(table: Sequence[Count], column: int) -> tuple[FunnelRow, ...]:
    """Rows by source (column 0) or language (column 1), the largest first; those beyond a table added up in one."""
    totals: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for row in table:
        name, verdict, documents, size = str(row[column]), row[2], row[3], row[4]
        total = totals[name]
        total[0] += documents
        total[2] += size
        if not verdict:
            total[1] += documents
            total[3] += size
    rows = [FunnelRow(name, *total) for name, total in totals.items()]
    rows.sort(key=lambda row: (-row.read_bytes, row.name))
    if len(rows) > TABLE_ROWS:
        rest = rows[TABLE_ROWS:]
        rows[TABLE_ROWS:] = [FunnelRow(
            f"{len(rest)} others", sum(row.read for row in rest), sum(row.kept for row in rest),
            sum(row.read_bytes for row in rest), sum(row.kept_bytes for row in rest),
        )]
    return tuple(rows)


def _verdicts(folder: str, manifest: Manifest, table: Sequence[Count]) -> tuple[SourceVerdicts, ...]:
    """Verdicts by source, the source with the most rejected documents first."""
    code = {str(entry["name"]) for entry in manifest.config["sources"] if entry.get("group") == "code"}
    read: Counter[str] = Counter()
    documents: Counter[Kind] = Counter()
    sizes: Counter[Kind] = Counter()
    for source, _, verdict, number, size in table:
        read[source] += number
        if verdict:
            documents[source, verdict] += number
            sizes[source, verdict] += size
    frequent = sorted(documents, key=lambda kind: (-documents[kind], kind))
    examples = draw_examples(folder, set(frequent[:_WITH_EXAMPLES]))
    rows: defaultdict[str, list[VerdictRow]] = defaultdict(list)
    for source, verdict in frequent:
        kind = source, verdict
        rows[source].append(VerdictRow(verdict, documents[kind], sizes[kind], examples.get(kind, ())))
    sources = [SourceVerdicts(source, source in code, number, tuple(rows[source][:_VERDICTS]))
               for source, number in read.items()]
    sources.sort(key=lambda entry: (-sum(row.documents for row in entry.verdicts), entry.source))
    return tuple(sources[:_SOURCES])


def _quarantine(folder: str) -> Quarantine:
    reasons: Counter[str] = Counter()
    first: list[BadRecord] = []
    total = 0
    for file in parquet_files(folder):
        for batch in batches(file, ["file", "record", "reason", "excerpt"]):
            found = strings(batch.column("reason"))
            total += len(found)
            for reason in found:
                if (reason or "") in reasons or len(reasons) < 10 * _SHOWN_REASONS:
                    reasons[reason or ""] += 1
            if (room := _SHOWN_BAD - len(first)) > 0:
                head = batch.slice(0, room)
                columns = [strings(head.column(name)) for name in ("file", "reason", "excerpt")]
                records = head.column("record").to_pylist()
                first += [BadRecord(path or "", record, reason or "", excerpt or "")
                          for path, reason, excerpt, record in zip(*columns, records, strict=True)]
    return Quarantine(total, tuple(reasons.most_common(_SHOWN_REASONS)), tuple(first))
