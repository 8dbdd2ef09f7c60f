"""A run folder made by hand: small, without any other package, and with every kind of thing a report shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from roots_pipeline.core.documents import DOCUMENT_SCHEMA
from roots_pipeline.core.manifest import write_manifest

Row = dict[str, Any]
MEASURES = ("word_count", "mean_word_length", "bullet_lines", "stop_words")
LIMITS: dict[str, dict[str, list[float | None] | None]] = {
    "default": {"word_count": [50, 100_000], "mean_word_length": [3, 10], "bullet_lines": [None, 0.9],
                "stop_words": [2, None]},
    "zh": {"mean_word_length": None, "word_count": [100, None]},
}
VOCABULARY = 4000
COMPRESSION = {"en": 3.9, "ar": 3.1, "hi": 5.2, "zh": 2.4}
TOKENS = {"web.en": 40_000, "web.ar": 20_000, "web.hi": 10_000, "code.python": 30_000}


def make_rows(documents: int = 400, seed: int = 1) -> list[Row]:
    """Documents of three sources in four languages, about a third of them rejected; code has no measures."""
    draw = np.random.default_rng(seed)
    rows: list[Row] = []
    for number in range(documents):
        source = ("web", "pages", "code")[int(draw.choice(3, p=[0.7, 0.1, 0.2]))]
        language = "python" if source == "code" else ("en", "ar", "hi", "zh")[int(draw.integers(4))]
        row: Row = {"id": f"{source}/{number:05d}", "source": source, "language": language,
                    "text": f"Document {number} of {source}.\n" * int(draw.integers(1, 30))}
        if source != "code":
            row |= {"word_count": float(int(np.exp(draw.normal(5.5, 1.5))) + 1),
                    "mean_word_length": float(draw.gamma(16, 0.3)), "bullet_lines": float(draw.beta(0.5, 6)),
                    "stop_words": float(draw.integers(0, 9))}
            for name, limit in {**LIMITS["default"], **LIMITS.get(language, {})}.items():
                low, high = limit or (None, None)
                if not (-np.inf if low is None else low) <= row[name] <= (np.inf if high is None else high):
                    row["verdict"] = name
                    break
        if "verdict" not in row and draw.random() < 0.08:
            row |= {"verdict": "exact_duplicates", "cause": f"{source}/00000"}
        rows.append(row)
    return rows


def write_corpus(run: Path, rows: Sequence[Row], *, bad: Sequence[Row] = (), config: Mapping[str, Any] | None = None,
                 per_file: int = 150, per_group: int = 40) -> str:
    """RUN/corpus with several files and row groups; returns its fingerprint."""
    folder = run / "corpus"
    table = pa.table({
        **{field.name: pa.array([row.get(field.name) for row in rows], field.type) for field in DOCUMENT_SCHEMA},
        **{name: pa.array([row.get(name) for row in rows], pa.float64()) for name in MEASURES},
    })
    kept = table.filter(pc.is_null(table["verdict"])).drop_columns(["verdict", "cause"])
    rejected = table.filter(pc.is_valid(table["verdict"]))
    files = {}
    for part, content in (("documents", kept), ("rejected", rejected)):
        (folder / part).mkdir(parents=True, exist_ok=True)
        for number, start in enumerate(range(0, max(1, content.num_rows), per_file)):
            path = folder / part / f"all-{number:05d}.parquet"
            pq.write_table(content.slice(start, per_file), path, row_group_size=per_group)
            files[f"{part}/{path.name}"] = {"size": path.stat().st_size, "xxh3": "0"}
    (folder / "quarantine").mkdir(exist_ok=True)
    if bad:
        names = ("file", "record", "reason", "excerpt")
        pq.write_table(pa.table({name: [row[name] for row in bad] for name in names}),
                       folder / "quarantine" / "web-00000.parquet")
    counts: Counter[tuple[str, str, str]] = Counter()
    sizes: Counter[tuple[str, str, str]] = Counter()
    for row in rows:
        key = (row["source"], row.get("language") or "", row.get("verdict") or "")
        counts[key] += 1
        sizes[key] += len(row["text"].encode())
    number_kept = kept.num_rows
    stages = [{"stage": "massivetext", "groups": None}, {"stage": "thresholds", "groups": ["web"], "limits": LIMITS}]
    names = sorted({row["source"] for row in rows})
    sources = [{"name": name, "group": "code" if name == "code" else "web"} for name in names]
    write_manifest(
        str(folder), "corpus", config=dict(config or {"sources": sources, "stages": stages}), inputs={},
        counts={"read": len(rows), "kept": number_kept, "rejected": len(rows) - number_kept, "bad_records": len(bad),
                "kept_bytes": sum(size for key, size in sizes.items() if not key[2]),
                "by_source_language_verdict": [[*key, counts[key], sizes[key]] for key in sorted(counts)]},
        fingerprint="c0ffee" * 5, files=files,
    )
    (folder / "history.jsonl").write_bytes(b'{"started":1.0,"seconds":12.5}\n')
    return "c0ffee" * 5


def write_tokenizer(
    run: Path, corpus: str = "c0ffee" * 5, bytes_per_token: Mapping[str, float] = MappingProxyType(COMPRESSION)
) -> None:
    """RUN/tokenizer: only its manifest."""
    write_manifest(
        str(run / "tokenizer"), "tokenizer", config={}, inputs={"corpus": corpus}, fingerprint="beef" * 8,
        counts={"vocab_size": VOCABULARY, "padded_vocab_size": 4096, "bytes_per_token": dict(bytes_per_token)},
    )


def write_mixture(run: Path, tokens: Mapping[str, int] = MappingProxyType(TOKENS)) -> None:
    """RUN/mixture: its lock and manifest."""
    total = sum(count**0.5 for count in tokens.values())
    groups = {
        name: {"file": name, "weight": count**0.5 / total, "documents": count // 100, "tokens": count,
               "train_documents": count // 110, "train_tokens": count * 9 // 10, "validation_documents": count // 1000,
               "validation_tokens": count // 10, "files": {}}
        for name, count in tokens.items()
    }
    lock = {"format": 1, "sequence_length": 256, "vocab_size": VOCABULARY, "seed": 42, "groups": groups}
    (run / "mixture").mkdir(parents=True, exist_ok=True)
    (run / "mixture" / "mixture.lock.yaml").write_text(yaml.safe_dump(lock), "utf-8")
    write_manifest(
        str(run / "mixture"), "mixture", config={"weights": {"rule": "temperature", "alpha": 0.5}},
        inputs={"corpus": "c0ffee" * 5, "tokenizer": "beef" * 8}, fingerprint="feed" * 8,
        counts={name: {"documents": group["documents"], "tokens": group["tokens"]} for name, group in groups.items()},
    )


def log_lines(steps: int = 120, seed: int = 2) -> list[dict[str, float]]:
    """The log of a training run."""
    draw = np.random.default_rng(seed)
    lines: list[dict[str, float]] = [{"step": 0, "samples": 0, "validation_loss": 8.31, "unigram_entropy": 6.1}]
    for step in range(1, steps + 1):
        loss = float(4.4 + 3.9 * np.exp(-step / 25) + draw.normal(0, 0.08))
        lines.append({"step": step, "samples": 8 * step, "loss": loss, "gradient_norm": float(draw.gamma(4, 0.3)),
                      "learning_rate": 1e-3 * min(1, step / 12), "tokens_per_second": float(draw.normal(21_000, 900))})
        if step % 30 == 0:
            lines.append({"step": step, "samples": 8 * step, "validation_loss": loss + 0.1, "unigram_entropy": 6.1})
    return lines


def write_model(run: Path, lines: Sequence[Mapping[str, float]], *, finished: bool = True) -> None:
    """RUN/model: its log, and its manifest if training has finished."""
    folder = run / "model"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "log.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    if finished:
        write_manifest(str(folder), "train", config={}, inputs={"mixture": "feed" * 8}, fingerprint="dead" * 8,
                       counts={"steps": 120, "samples": 960, "tokens": 245_760, "parameters": 1_234_567})


def write_everything(run: Path) -> list[Row]:
    """A whole run; returns the rows of its corpus."""
    rows = make_rows()
    bad = [{"file": f"bad/{number}.jsonl", "record": number or None, "reason": "not valid JSON", "excerpt": '{"text": '}
           for number in range(3)]
    write_corpus(run, rows, bad=bad)
    write_tokenizer(run)
    write_mixture(run)
    write_model(run, log_lines())
    said = {"prompt": "The old mill", "text": " stood by the river."}
    (run / "model" / "generated.json").write_bytes(orjson.dumps(said))
    return rows


# Text that would run, break or bloat a page that trusted it.
CANARIES = (
    "<script>document.title='PWNED'</script>", '"><img src=x onerror="document.title=1">', "javascript:alert(1)",
    "</style></title></textarea><svg onload=alert(1)>", "{{ 7 * 7 }} {% raw %}", "<a href='https://evil.example/'>x</a>",
    "\u202egnp.exe\u2066", "\x1b]0;title\x07\x00\x08", "&lt;script&gt; &#x3c;", "x" * 10_000_000, "\n" * 100_000,
    "a\u0300" + "\u0301" * 5000, "]]>--><!--", "https://evil.example/track.png",
)


def write_hostile(run: Path) -> None:
    """A run in which every text, name and reason is one of CANARIES."""
    rows: list[Row] = [
        {"id": canary[:300], "source": canary[:200], "language": canary[:50], "text": canary, "verdict": canary[:100],
         "cause": canary[:5000]} for canary in CANARIES
    ]
    bad = [{"file": canary[:1000], "record": 1, "reason": canary[:1000], "excerpt": canary[:200]}
           for canary in CANARIES]
    write_corpus(run, rows, bad=bad)
    write_model(run, [{"step": 1, "samples": 1, "loss": 1.0}])
    said = {"prompt": CANARIES[0], "text": CANARIES[1] + "\u202e"}
    (run / "model" / "generated.json").write_bytes(orjson.dumps(said))
