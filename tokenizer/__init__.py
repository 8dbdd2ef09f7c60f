"""Rootbloom's tokenizer: corpus in, `tokenizer.json` out, and text to token ids.

    corpus documents ──count──▶ counts.parquet ──train──▶ tokenizer.json ──encode──▶ token ids
    (language, text)            (language, piece, count)  (byte-level BPE)

`pretokenize` cuts text into pieces as BLOOM does, `count` and `merge` make the table of pieces, `bpe` learns
merges from it, `constraint` says which vocabulary sizes are possible, `export` writes the files that Hugging
Face reads, `encode` turns text into ids. `python -m tokenizer --help` lists the commands.
"""
