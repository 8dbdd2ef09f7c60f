"""Limits as the stage `thresholds` writes them into the manifest."""

from __future__ import annotations

import pytest

from roots_pipeline.report.facts import Limit
from roots_pipeline.report.limits import read_limits


def test_default_first_then_languages_and_limits_taken_away() -> None:
    stages = [
        {"stage": "massivetext", "words": {"zh": "characters"}},
        {"stage": "thresholds", "limits": {
            "en": {"stop_words": None, "length": [None, 3]},
            "default": {"length": [1, None], "stop_words": [2, 5.5], "unlimited": None, "open": [None, None]},
        }},
    ]
    assert read_limits({"stages": stages}) == (
        Limit("length", 1, None, None), Limit("stop_words", 2, 5.5, None),
        Limit("stop_words", None, None, "en"), Limit("length", None, 3, "en"),
    )
    assert read_limits({"stages": []}) == ()


@pytest.mark.parametrize("limits", [{"default": {"length": [1, 2, 3]}}, {"default": {"length": ["few", None]}}, [1]])
def test_another_shape_is_an_error(limits: object) -> None:
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
        read_limits({"stages": [{"stage": "thresholds", "limits": limits}]})
