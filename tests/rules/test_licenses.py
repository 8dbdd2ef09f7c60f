"""Licences: what headers say, expressions of SPDX, the filter and its published fault."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roots_pipeline.core.documents import make_batch
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.rules.license_filter import DetectLicense, FilterLicense
from roots_pipeline.rules.licenses import allows, license_of


@pytest.mark.parametrize(("header", "name"), [
    ("// SPDX-License-Identifier: MIT", "MIT"),
    ("/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause */",
     "(GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause"),
    ("# spdx-license-identifier: apache-2.0 or mit\n", "apache-2.0 OR mit"),
    ("<!-- SPDX-License-Identifier: CC0-1.0 -->", "CC0-1.0"),
    ("// SPDX-License-Identifier: \n// Licensed under the MIT license", "MIT"),
    ('# Licensed under the Apache License,\n#   Version 2.0 (the "License");', "Apache-2.0"),
    (" * Permission is hereby granted, free of charge, to any person\n * obtaining a copy", "MIT"),
    ("# Redistribution and use in source and binary\n# forms, with or without modification", "BSD-2-Clause"),
    ("-- Redistribution and use in source and binary forms\n-- Neither the name of the X", "BSD-3-Clause"),
    ("// Use of this source code is governed by a BSD-style\n// license that can be found", "LicenseRef-BSD"),
    ("/* This program is free software; you can redistribute it and/or modify it under the terms of the GNU General\n"
     " * Public License as published by the Free Software Foundation; either version 2 of the License, or (at your\n"
     " * option) any later version. */", "GPL-2.0-or-later"),
    ("# terms of version 3 of the GNU Affero General Public License", "AGPL-3.0-only"),
    ("; under the terms of the GNU Lesser General Public License version 2.1", "LGPL-2.1-only"),
    ("dnl GPLv3+", "GPL-3.0-or-later"),
    ("# License: LGPL v2.1 or later", "LGPL-2.1-or-later"),
    ("# it under the terms of the GNU General Public License.", "LicenseRef-GPL"),
    ("/* GNU General Public License, version 3, or any later version, with the GCC Runtime Library Exception */",
     "GPL-3.0-or-later WITH GCC-exception-3.1"),
    ("// This Source Code Form is subject to the terms of the Mozilla Public\n// License, v. 2.0.", "MPL-2.0"),
    ("# This is free and unencumbered software released into the public domain.", "Unlicense"),
    ("# You may use it under the same terms as Perl itself.", "Artistic-1.0-Perl OR GPL-1.0-or-later"),
    ("/* Dual licensed under the MIT license and GPL v2 */", "MIT OR GPL-2.0-only"),
    ("# MIT license for the parser. Parts: Mozilla Public License 2.0, mpl-2.0", "MIT AND MPL-2.0"),
    ("# Copyright 2020 Somebody. All rights reserved.", None),
    ("import os\nlicense = ask()\n", None),
    ("print('hello')", None),
    ("# SPDX-License-Identifier: ((((", None),
    ("", None),
])  # fmt: skip
def test_headers(header: str, name: str | None) -> None:
    assert license_of(header.encode()) == name
    assert license_of(header.replace("\n", "\r\n").encode()) == name


@given(st.binary(max_size=300).map(lambda rest: b"SPDX-License-Identifier: " + rest))
def test_any_bytes(header: bytes) -> None:
    found = license_of(header)
    assert found is None or (found and allows(found, lambda _: True) in (True, False))


@pytest.mark.parametrize(("expression", "good", "answer"), [
    ("A", {"A"}, True), ("A", {"B"}, False),
    ("A OR B", {"B"}, True), ("A AND B", {"B"}, False), ("A AND B", {"A", "B"}, True),
    ("A AND B OR C", {"C"}, True), ("A AND (B OR C)", {"A", "C"}, True), ("A AND (B OR C)", {"B", "C"}, False),
    ("(A WITH x) OR B", {"A"}, True), ("A WITH x AND B", {"B"}, False), ("a or b", {"b"}, True),
    ("((A))", {"A"}, True), ("(A", {"(A"}, True), ("A B", {"A B"}, True), ("OR", {"OR"}, True), ("", {""}, False),
    ("(" * 5000 + "A", {"A"}, False),
])  # fmt: skip
def test_expressions(expression: str, good: set[str], answer: bool) -> None:
    assert allows(expression, lambda name: name in good) is answer


def judged(stage: FilterLicense, *licenses: str | None) -> list[str | None]:
    rows = [{"id": str(k), "text": "", "source": "s", "license": name} for k, name in enumerate(licenses)]
    after = stage(make_batch(rows))
    causes: list[str | None] = after.column("cause").to_pylist()
    assert after.column("verdict").to_pylist() == [None if cause is None else "license" for cause in causes]
    return causes


ALL = ("MIT", "gpl-2.0", "GPL-3.0-or-later", "LGPL-2.1+", "AGPL-3.0-only WITH x", "MIT OR GPL-2.0", "MIT AND GPL-2.0",
       "LicenseRef-GPL", None, "", "gplx")


def test_default_leaves_out_licences_of_the_gnu_project() -> None:
    gone = {"gpl-2.0", "GPL-3.0-or-later", "LGPL-2.1+", "AGPL-3.0-only WITH x", "MIT AND GPL-2.0", "LicenseRef-GPL"}
    assert judged(FilterLicense(), *ALL) == [name if name in gone else None for name in ALL]


def test_as_published_keeps_them_only() -> None:
    kept = {"gpl-2.0", "GPL-3.0-or-later", "LGPL-2.1+", "AGPL-3.0-only WITH x", "MIT OR GPL-2.0"}
    assert judged(FilterLicense(as_published=True), *ALL) == [
        None if name in kept else "unknown" if name is None else name for name in ALL]


def test_required_and_unknown() -> None:
    stage = FilterLicense(refuse=(), require=("mit", "apache-2.0"), unknown="drop")
    assert judged(stage, "MIT", "Apache-2.0", "ISC", None) == [None, None, "ISC", "unknown"]
    with pytest.raises(RecipeError, match="names no licence"):
        FilterLicense(refuse=("",))


def test_verdicts_stay_and_no_rows() -> None:
    row = {"id": "1", "text": "", "source": "s", "license": "gpl-2.0", "verdict": "older"}
    after = FilterLicense()(make_batch([row]))
    assert after.column("verdict").to_pylist() == ["older"]
    assert FilterLicense()(make_batch([])).num_rows == 0 and DetectLicense()(make_batch([])).num_rows == 0


def test_headers_fill_what_is_not_known() -> None:
    known = [("# MIT license", None), ("# MIT license", "ISC"), ("x", None), ("x", "ISC")]
    batch = make_batch([{"id": str(k), "text": text, "source": "s", "license": name}
                        for k, (text, name) in enumerate(known)])
    assert DetectLicense()(batch).column("license").to_pylist() == ["MIT", "ISC", None, "ISC"]
    assert DetectLicense(header_wins=True)(batch).column("license").to_pylist() == ["MIT", "MIT", None, "ISC"]
