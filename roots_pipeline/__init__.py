"""Rootbloom, step one: raw multilingual text becomes a filtered, deduplicated corpus.

Read `roots_pipeline.pipeline` first: it turns a recipe into the ordered list of stages. Run with
`python -m roots_pipeline run --recipe sample --run runs/sample`.
"""

__version__ = "0.1.0"
