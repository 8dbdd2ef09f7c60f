"""Personal information: golden rows, plain Python on any text, each switch, and bounded work on hostile texts."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from roots_pipeline.core.documents import text_buffers
from roots_pipeline.core.errors import RecipeError
from roots_pipeline.rules import pii_patterns
from roots_pipeline.rules.pii import PersonalInformation
from tests.rules import pii_twin as twin
from tests.rules.corpora import batch_of, real_documents
from tests.rules.roots_golden import golden

ALL_TAGS = twin.ORDER
PUBLISHED = PersonalInformation(as_published=True)
EVERYTHING = PersonalInformation(as_published=True, tags=ALL_TAGS)
MENDED = PersonalInformation()

PIECES = [
    "a", "A", "b1", "1", "12", "123", "A1", "1A", "Ab", "x", "中", "文", "１", "٣", "-", "–", " ", "  ", "\n", "\r\n",
    "\t", "\u3000", "\x08", "/", "+", "=", ":", "::", "_", ".", "..", ",", ";", "?", "!", "'", '"', "(", ")", "<", ">",
    "[", "%", "@", "@@", "a@b.cc", "@user", "10.", "8.8.8.8", "255", "2001:", "fe80:", "ffff:", "2020-", "12.11.", "。",
    "，", "é", "\u0301", "\x1c", "\x85", "\u2028",
]  # fmt: skip
texts = st.one_of(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.text(max_size=60))


def spans(stage: PersonalInformation, *given: str) -> list[list[tuple[str, int, int]]]:
    """The matches of each text, tag by tag, in characters."""
    data, offsets = text_buffers(batch_of(*given).column("text"))
    found: list[list[tuple[str, int, int]]] = [[] for _ in given]
    for text, start, piece, matches in stage.matches(data, offsets, np.zeros(len(given), np.int64)):
        first = len(data[offsets[text] : start].tobytes().decode())
        for match in matches:
            begin, stop = (first + len(piece[:place].decode()) for place in (match.start, match.stop))
            found[text].append((stage.tags[match.tag], begin, stop))
    return [sorted(row, key=lambda match: (stage.tags.index(match[0]), match[1])) for row in found]


def redacted(stage: PersonalInformation, *given: str) -> list[str]:
    out: list[str] = stage(batch_of(*given)).column("text").to_pylist()
    return out


def test_golden_rows(shared: Path) -> None:
    rows = golden(shared, "pii")
    given = [row["text"] for row in rows]
    assert spans(PUBLISHED, *given) == [[tuple(match) for match in row["matches"]] for row in rows]
    assert redacted(PUBLISHED, *given) == [row["redacted"] for row in rows]


def test_golden_rows_in_any_order_of_tags(shared: Path) -> None:
    for row in golden(shared, "pii"):
        for order, text in row.get("redacted_by_order", {}).items():
            stage = PersonalInformation(as_published=True, tags=tuple(order.split(">")))
            assert redacted(stage, row["text"]) == [text]


@settings(max_examples=300, deadline=None)
@given(texts=st.lists(texts, min_size=1, max_size=4))
@example(texts=["111 222 33A words", "A-b-c-d-e.", "b-中c-1:a-"])
@example(texts=["::1", "1::g", "fe80:%eth0", "1:2:3:4:5:6:7:8", "a@b.cc中@def"])
@example(texts=["123 456\n789 012", "\n@abc\n\n", "a@b.cc;a@b.cc", ""])
def test_any_text_as_in_plain_python(texts: list[str]) -> None:
    wanted = [[(tag, *span) for tag in ALL_TAGS for span in twin.matches(text, tag)] for text in texts]
    assert spans(EVERYTHING, *texts) == wanted
    assert redacted(PUBLISHED, *texts) == [twin.redacted(text) for text in texts]


@settings(max_examples=100, deadline=None)
@given(texts=st.lists(texts, min_size=1, max_size=3), style=st.sampled_from(["PI:TAG", "<TAG>"]))
def test_in_place_everything_else_stays(texts: list[str], style: str) -> None:
    """Cutting the matches out of the text and the tags out of the result leaves the same."""
    stage = TypeAdapter(PersonalInformation).validate_python({"tags": ALL_TAGS, "style": style})
    out = stage(batch_of(*texts))
    for k, (text, new) in enumerate(zip(texts, out.column("text").to_pylist(), strict=True)):
        found = spans(stage, text)[0]
        assert [out.column(f"pii_{tag.lower()}")[k].as_py() for tag in ALL_TAGS] == [
            sum(match[0] == tag for match in found) for tag in ALL_TAGS
        ]
        covered = {place for _, start, stop in found for place in range(start, stop)}
        place = 0
        while place < len(text):
            if place not in covered:
                assert new[0] == text[place]
                new, place = new[1:], place + 1
                continue
            end = place
            while end in covered:
                end += 1
            inside = {(start, stop): tag for tag, start, stop in reversed(found) if place <= start < end}
            while place < end:  # matches that touch are apart, those that overlap are one
                stop, tags = place, []
                for (first, last), tag in sorted(inside.items()):
                    if first == place or first < stop:
                        stop = max(stop, last)
                        tags.append(tag)
                best = min(tags, key=ALL_TAGS.index)
                string = f"PI:{best}" if style == "PI:TAG" else f"<{best}>"
                assert new.startswith(string)
                new, place = new[len(string) :], stop
        assert new == ""


@pytest.mark.parametrize("stage", [PersonalInformation(tags=("KEY",), as_published=fault) for fault in (False, True)])
@pytest.mark.parametrize("alphabet", ["ab1_-", "aB_/ ", "a_-é1", "aA12- ", "a:_=."])
def test_the_gate_of_keys_lets_all_keys_pass(stage: PersonalInformation, alphabet: str) -> None:
    draw = random.Random(alphabet)
    given = ["".join(draw.choices(alphabet, k=draw.randint(4, 24))) for _ in range(3000)]
    manner = pii_patterns.Manner(
        stage.narrow_boundaries, stage.used_up_boundaries, stage.cut_addresses, stage.names_take_han
    )
    pattern = pii_patterns.pattern_of("KEY", manner)
    assert [bool(found) for found in spans(stage, *given)] == [bool(pattern.spans(text.encode())) for text in given]



def test_real_text_as_in_plain_python(shared: Path) -> None:
    for language in ("en", "zh", "ar", "hi"):
        rows = real_documents(shared, language, 60)
        given = ["\n".join(line[:1000] for line in row["text"][:8000].split("\n")) for row in rows]
        found = spans(PUBLISHED, *given)
        assert found == [[(tag, *span) for tag in PUBLISHED.tags for span in twin.matches(text, tag)] for text in given]


def test_labelled_sentences(shared: Path) -> None:
    """E-mail and IP addresses of sentences with known spans; as published, those behind a `|` are missed."""
    rows = json.loads((shared / "data" / "pii" / "synth_dataset_v2.json").read_text("utf-8"))
    given = [row["full_text"] for row in rows]
    for label, tag in (("EMAIL_ADDRESS", "EMAIL"), ("IP_ADDRESS", "IP_ADDRESS")):
        wanted = [
            {(span["start_position"], span["end_position"]) for span in row["spans"] if span["entity_type"] == label}
            for row in rows
        ]
        found = [{match[1:] for match in row if match[0] == tag} for row in spans(MENDED, *given)]
        assert found == wanted
    published = [row for row in spans(PUBLISHED, *given) if any(match[0] == "IP_ADDRESS" for match in row)]
    assert len(published) == 11  # 9 of 14, and two telephone numbers


@pytest.mark.parametrize(
    ("switch", "text", "published", "mended"),
    [
        ("replace_everywhere", "@ann and @annabel", "PI:USER and PI:USERabel", "PI:USER and PI:USER"),
        ("narrow_boundaries", "(8.8.8.8) 8.8.4.4。", "(8.8.8.8) 8.8.4.4。", "(PI:IP_ADDRESS) PI:IP_ADDRESS。"),
        ("used_up_boundaries", "1.1.1.1 2.2.2.2", "PI:IP_ADDRESS 2.2.2.2", "PI:IP_ADDRESS PI:IP_ADDRESS"),
        ("cut_addresses", "1.2.3.4.5 fe::1:2", "PI:IP_ADDRESS.5 PI:IP_ADDRESS:2", "1.2.3.4.5 PI:IP_ADDRESS"),
        ("addresses_like_dates", "10.10.10.10", "10.10.10.10", "PI:IP_ADDRESS"),
        ("names_take_han", "联系li@b.com吧 @abc谢谢", "PI:EMAIL PI:USER", "联系PI:EMAIL吧 PI:USER谢谢"),
        ("keep_no_separator", "123 456 789 已发", "PI:KEY已发", "PI:KEY 已发"),
    ],
)
def test_switches(switch: str, text: str, published: str | None, mended: str) -> None:
    assert redacted(MENDED, text) == [mended]
    one = redacted(TypeAdapter(PersonalInformation).validate_python({switch: True}), text)
    assert one != [mended]
    assert published is None or one == [published]


def test_addresses_as_a_whole() -> None:
    given = {
        "2001:db8::ff00:42:8329": "PI:IP_ADDRESS", "::ffff:192.0.2.128.": "PI:IP_ADDRESS.", ":: a::b": ":: a::b",
        "8.8.4.4:53": "PI:IP_ADDRESS:53", "fe80::1%eth0 up": "PI:IP_ADDRESS up", "10.0.0.0/8": "PI:IP_ADDRESS/8",
        "http://1.2.3.4:80/": "http://PI:IP_ADDRESS:80/", "ip:1.2.3.4": "ip:PI:IP_ADDRESS", "::1:": "PI:IP_ADDRESS:",
        "1.2.3.256": "1.2.3.256", "v1.2.3.4.5": "v1.2.3.4.5", "12:30:45": "12:30:45", "1.2.3.4x": "1.2.3.4x",
        "1:2:3:4:5:6:7:8:9": "1:2:3:4:5:6:7:8:9", "." * 200 + "1.2.3.4": "." * 200 + "1.2.3.4", "std::a1": "std::a1",
    }  # fmt: skip
    stage = PersonalInformation(tags=("IP_ADDRESS",))
    assert redacted(stage, *given) == list(given.values())


def test_off_by_default() -> None:
    text = "passport AB1234567, call +49 (30) 123 45 67 on 2020-12-31"
    (found,) = redacted(PersonalInformation(tags=("ID",)), text)
    assert found == "passport PI:ID, call +49 (30) 123 45 67 on 2020-12-31"
    assert "PI:NUMBER" in redacted(PersonalInformation(tags=("NUMBER",)), text)[0]
    assert "pii_id" not in MENDED.gives


class Searches:
    """A pattern that counts how often it is asked, and for how many bytes."""

    def __init__(self, compiled: object) -> None:
        self.compiled, self.calls, self.bytes = compiled, 0, 0

    def search(self, piece: bytes, place: int) -> object:
        self.calls += 1
        self.bytes += len(piece) - place
        return self.compiled.search(piece, place)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    ["A1" * 8000 + "%", "A1" * 2000 + "%", "a-" * 4000, "1A1A1A:" * 1100, "123456789:" * 800, "a@" * 4000, "@" * 8000,
     "a@b." * 2000, "1." * 4000, "::" * 4000, "1:" * 4000]
)  # fmt: skip
def test_bounded_work(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes the published pattern of keys take the square of the length and more: one search a match here."""
    made: dict[object, Searches] = {}
    original = pii_patterns.pattern_of

    def counting(tag: pii_patterns.Tag, manner: pii_patterns.Manner) -> pii_patterns.Pattern:
        pattern = original(tag, manner)
        return pii_patterns.Pattern(made.setdefault(tag, Searches(pattern.compiled)), pattern.shares_boundaries)

    monkeypatch.setattr("roots_pipeline.rules.pii.pattern_of", counting)
    out = MENDED(batch_of(text))
    matches = sum(out.column(f"pii_{tag.lower()}")[0].as_py() for tag in MENDED.tags)
    assert sum(searches.calls for searches in made.values()) <= 4 * (matches + 1) + len(text) // 2
    assert max((searches.bytes for searches in made.values()), default=0) <= len(text) * MENDED.longest_piece


def test_long_lines_in_pieces() -> None:
    """Lines longer than a piece are cut where no match can be; what has no such place is left and counted."""
    mail = "me@example.org"
    long = ("word " * 3000 + mail + " " + "多字。" * 5000 + mail + "。") * 2
    blob = "x" * 9000
    out = MENDED(batch_of(long, f"{mail} {blob} {mail}\n{mail}", blob))
    assert out.column("pii_email").to_pylist() == [4, 3, 0]
    assert out.column("text").to_pylist()[0] == long.replace(mail, "PI:EMAIL")
    assert out.column("pii_unread_bytes").to_pylist() == [0, 9001, 9000]


@pytest.mark.parametrize(
    "text",
    ["x" * 5_000_000, "a1 b2\n" * 800_000, "@\n" * 2_500_000, " " * 5_000_000, "中" * 1_700_000, "\0" * 5_000_000],
)
def test_giants(text: str) -> None:
    assert redacted(MENDED, text) == [text]


def test_dense_giant() -> None:
    assert redacted(MENDED, "me@example.org, @me_and_you " * 30_000) == ["PI:EMAIL, PI:USER " * 30_000]


def test_batches_without_rows_and_slices() -> None:
    batch = batch_of("a@b.org", "8.8.8.8", "none")
    assert MENDED(batch.slice(0, 0)).num_rows == 0
    assert redacted(MENDED) == []
    assert MENDED(batch.slice(1, 2)).column("text").to_pylist() == ["PI:IP_ADDRESS", "none"]
    assert PUBLISHED(batch.slice(1, 2)).column("text").to_pylist() == ["PI:IP_ADDRESS", "none"]


@pytest.mark.parametrize("wrong", [{"tags": []}, {"tags": ["KEY", "KEY"]}, {"longest_piece": 5}])
def test_settings_that_make_no_sense(wrong: dict[str, object]) -> None:
    with pytest.raises(RecipeError):
        TypeAdapter(PersonalInformation).validate_python(wrong)
    with pytest.raises(ValidationError):
        TypeAdapter(PersonalInformation).validate_python({"tags": ["PHONE"]})
