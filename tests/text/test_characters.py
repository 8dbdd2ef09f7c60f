"""The class table against Python's own idea of each character."""

from __future__ import annotations

import sys
import unicodedata

from roots_pipeline.text import characters as c


def test_every_code_point() -> None:
    table = c.character_classes(bullets="•-", symbols="!١")
    for code in range(sys.maxunicode + 1):
        character, flags = chr(code), table[code]
        assert bool(flags & c.SPACE) == character.isspace(), hex(code)
        assert bool(flags & c.ALPHABETIC) == character.isalpha(), hex(code)
        assert bool(flags & c.MARK) == (unicodedata.category(character)[0] == "M"), hex(code)
        assert bool(flags & c.LINE_BREAK) == (len(f"a{character}b".splitlines()) == 2), hex(code)
        assert bool(flags & c.BULLET) == (character in "•-")
        assert bool(flags & c.CONTENT) == (character not in "!١")
        assert bool(flags & c.SPECIAL) == (character in "#.…")


def test_scripts_without_spaces() -> None:
    table = c.character_classes()
    for name in ("CJK UNIFIED IDEOGRAPH-4E2D", "HIRAGANA LETTER A", "KATAKANA LETTER KA", "THAI CHARACTER KO KAI"):
        assert table[ord(unicodedata.lookup(name))] & c.UNSPACED
    for name in ("LAO LETTER KO", "KHMER LETTER KA", "MYANMAR LETTER KA", "HALFWIDTH KATAKANA LETTER A"):
        assert table[ord(unicodedata.lookup(name))] & c.UNSPACED
    for character in "aéдا한नஅ1，。":
        assert not table[ord(character)] & c.UNSPACED, character
