"""Verdicts of the MassiveText rules beside datatrove's Gopher filters, document by document.

    python -m benchmarks.datatrove_verdicts [--documents 1000] [--characters 5000] [languages …]

Input: the folder of real text beside the checkout; without it the benchmark says so and stops. `convention: datatrove`
with words between white space; datatrove gets the same words (`str.split`). Prints each document on which the two
disagree, and the counts; the test of the same name does this for fewer documents.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from benchmarks.decontamination import DATA
from tests.rules import test_datatrove_verdicts as peer
from tests.rules.corpora import real_documents


def disagreements(documents: list[dict[str, Any]]) -> int:
    """On how many documents the two disagree; each is printed."""
    try:
        peer.assert_same_verdicts(documents)
    except AssertionError as error:
        if len(documents) > 1:
            return sum(disagreements([document]) for document in documents)
        print(error)
        return 1
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--characters", type=int, default=5000, help="what is read of a document")
    parser.add_argument("languages", nargs="*", default=["en", "fr", "ar", "hi", "vi", "zh"])
    options = parser.parse_args()
    if not (DATA / "corpus").is_dir():
        print("skipped: there is no folder of real text beside the checkout.")
        return

    def words(text: str, language: str) -> list[str]:
        return text.split()

    modules: list[Any] = [peer.quality, peer.repetition]
    for module in modules:
        module.split_into_words = words
    total = different = 0
    for language in options.languages:
        documents = [{**document, "text": document["text"][: options.characters]}
                     for document in real_documents(Path(DATA).parent, language, options.documents)]
        different += sum(disagreements(documents[start : start + 50]) for start in range(0, len(documents), 50))
        total += len(documents)
        print(f"{language}: {len(documents)} documents", flush=True)
    print(f"{total} documents, {different} with another verdict")


if __name__ == "__main__":
    main()
