"""The functions of ROOTS's catalogue cleaning that exist once for each language, by their published names."""

from __future__ import annotations

from typing import ClassVar

from roots_pipeline.rules.catalogue_references import RemoveReferences
from roots_pipeline.rules.catalogue_texts import SplitSentences


class RemoveReferencesAr(RemoveReferences):
    name: ClassVar[str] = "remove_references_ar"
    language: ClassVar[str] = "ar"


class RemoveReferencesBn(RemoveReferences):
    name: ClassVar[str] = "remove_references_bn"
    language: ClassVar[str] = "bn"


class RemoveReferencesCa(RemoveReferences):
    name: ClassVar[str] = "remove_references_ca"
    language: ClassVar[str] = "ca"


class RemoveReferencesEn(RemoveReferences):
    name: ClassVar[str] = "remove_references_en"
    language: ClassVar[str] = "en"


class RemoveReferencesEs(RemoveReferences):
    name: ClassVar[str] = "remove_references_es"
    language: ClassVar[str] = "es"


class RemoveReferencesEu(RemoveReferences):
    name: ClassVar[str] = "remove_references_eu"
    language: ClassVar[str] = "eu"


class RemoveReferencesFr(RemoveReferences):
    name: ClassVar[str] = "remove_references_fr"
    language: ClassVar[str] = "fr"


class RemoveReferencesHi(RemoveReferences):
    name: ClassVar[str] = "remove_references_hi"
    language: ClassVar[str] = "hi"


class RemoveReferencesId(RemoveReferences):
    name: ClassVar[str] = "remove_references_id"
    language: ClassVar[str] = "id"


class RemoveReferencesPt(RemoveReferences):
    name: ClassVar[str] = "remove_references_pt"
    language: ClassVar[str] = "pt"


class RemoveReferencesUr(RemoveReferences):
    name: ClassVar[str] = "remove_references_ur"
    language: ClassVar[str] = "ur"


class RemoveReferencesVi(RemoveReferences):
    name: ClassVar[str] = "remove_references_vi"
    language: ClassVar[str] = "vi"


class RemoveReferencesZh(RemoveReferences):
    name: ClassVar[str] = "remove_references_zh"
    language: ClassVar[str] = "zh"


class SplitSentencesAr(SplitSentences):
    name: ClassVar[str] = "split_sentences_ar"


class SplitSentencesCa(SplitSentences):
    name: ClassVar[str] = "split_sentences_ca"


class SplitSentencesEn(SplitSentences):
    name: ClassVar[str] = "split_sentences_en"


class SplitSentencesEs(SplitSentences):
    name: ClassVar[str] = "split_sentences_es"


class SplitSentencesEu(SplitSentences):
    name: ClassVar[str] = "split_sentences_eu"


class SplitSentencesFr(SplitSentences):
    name: ClassVar[str] = "split_sentences_fr"


class SplitSentencesId(SplitSentences):
    name: ClassVar[str] = "split_sentences_id"


class SplitSentencesIndicBn(SplitSentences):
    name: ClassVar[str] = "split_sentences_indic-bn"


class SplitSentencesIndicGu(SplitSentences):
    name: ClassVar[str] = "split_sentences_indic-gu"


class SplitSentencesIndicHi(SplitSentences):
    name: ClassVar[str] = "split_sentences_indic-hi"


class SplitSentencesIndicKn(SplitSentences):
    name: ClassVar[str] = "split_sentences_indic-kn"


class SplitSentencesIndicMl(SplitSentences):
    name: ClassVar[str] = "split_sentences_indic-ml"


class SplitSentencesIndicMr(SplitSentences):
    name: ClassVar[str] = "split_sentences_indic-mr"


class SplitSentencesIndicPa(SplitSentences):
    name: ClassVar[str] = "split_sentences_indic-pa"


class SplitSentencesIndicTa(SplitSentences):
    name: ClassVar[str] = "split_sentences_indic-ta"


class SplitSentencesIndicTe(SplitSentences):
    name: ClassVar[str] = "split_sentences_indic-te"


class SplitSentencesPt(SplitSentences):
    name: ClassVar[str] = "split_sentences_pt"


class SplitSentencesVi(SplitSentences):
    name: ClassVar[str] = "split_sentences_vi"


class SplitSentencesZhs(SplitSentences):
    name: ClassVar[str] = "split_sentences_zhs"


class SplitSentencesZht(SplitSentences):
    name: ClassVar[str] = "split_sentences_zht"


REMOVE_REFERENCES: tuple[type[RemoveReferences], ...] = (
    RemoveReferencesAr,
    RemoveReferencesBn,
    RemoveReferencesCa,
    RemoveReferencesEn,
    RemoveReferencesEs,
    RemoveReferencesEu,
    RemoveReferencesFr,
    RemoveReferencesHi,
    RemoveReferencesId,
    RemoveReferencesPt,
    RemoveReferencesUr,
    RemoveReferencesVi,
    RemoveReferencesZh,
)
SPLIT_SENTENCES: tuple[type[SplitSentences], ...] = (
    SplitSentencesAr,
    SplitSentencesCa,
    SplitSentencesEn,
    SplitSentencesEs,
    SplitSentencesEu,
    SplitSentencesFr,
    SplitSentencesId,
    SplitSentencesIndicBn,
    SplitSentencesIndicGu,
    SplitSentencesIndicHi,
    SplitSentencesIndicKn,
    SplitSentencesIndicMl,
    SplitSentencesIndicMr,
    SplitSentencesIndicPa,
    SplitSentencesIndicTa,
    SplitSentencesIndicTe,
    SplitSentencesPt,
    SplitSentencesVi,
    SplitSentencesZhs,
    SplitSentencesZht,
)
