"""The whole run on one HTML page that needs no network, no script and no server.

    run folder ──collect──▶ facts (plain dataclasses) ──page──▶ report.html

`collect` reads manifests, Parquet and the training log, in bounded memory; `histogram_chart` and
`line_chart` draw SVG; `page` fills the template. Text from documents is hostile until `safe_text` has handled it.
"""

from roots_pipeline.report.page import write_report

__all__ = ["write_report"]
