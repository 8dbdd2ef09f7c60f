"""The report of the whole chain in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser import CHROMIUM, browser
from tests.chain.conftest import Chain
from tests.report.rendered import assert_stands_alone


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_the_report_of_the_sample_run(chain: Chain, tmp_path: Path) -> None:
    with browser(tmp_path / "profile") as tab:
        assert_stands_alone(tab, chain.run / "report.html", "Run runs/sample · Rootbloom")
        charts = tab.run("[...document.querySelectorAll('figcaption')].map((it) => it.textContent.trim())")
        assert {"word_count", "Loss, nats a token", "Learning rate"} <= set(charts)
