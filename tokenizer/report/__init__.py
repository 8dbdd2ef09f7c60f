"""How good a vocabulary is, as a page for people and as JSON for programs.

    counts ──measure──▶ fertility, bytes per token, split words, Rényi efficiency, by language
           ──monolingual──▶ the same with a tokenizer of one language's own
    tokenizer.json ──vocabulary──▶ unused, rare, strange and longest tokens, scripts

`build` makes the report of a run, `compare` sets two tokenizers side by side, `page` turns both into HTML. Everything
is measured on count tables: encoding each distinct piece once and weighting it by its count is exact.
"""
