"""Whatever is wrong with a YAML text is one kind of error."""

from __future__ import annotations

import pytest
import yaml

from roots_pipeline.core.yaml_hints import parse_yaml


@pytest.mark.parametrize("text", ["[", "a: *b", "[" * 3000, "a: 2026-13-45", b"\xff\xfe\x00", b"a: \xff", "a: \0"])
def test_all_bad_texts_raise_one_error(text: str | bytes) -> None:
    with pytest.raises(yaml.YAMLError):
        parse_yaml(text)


def test_good_texts_are_those_of_pyyaml() -> None:
    assert parse_yaml("a: [1, 2.5, x]") == parse_yaml(b"a: [1, 2.5, x]") == {"a": [1, 2.5, "x"]}
    assert parse_yaml("") is None
