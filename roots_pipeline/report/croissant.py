"""The corpus described in Croissant 1.1 (MLCommons): what its files and columns are, readable by programs.

In: the schema of the documents and a few facts. Out: JSON-LD that `mlcroissant` validates and loads records with.
Files are named by pattern, so a corpus of any number of shards has a short description.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

_TERMS = (
    "citeAs", "column", "extract", "field", "fileObject", "fileProperty", "fileSet", "format",
    "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex",
    "repeated", "replace", "samplingRate", "separator", "source", "subField", "transform",
)
_WHAT = {
    "id": "Stable name of the document.", "text": "The text.", "source": "Name of the source in the recipe.",
    "language": "Language code as ROOTS uses them.", "url": "Where the document comes from.",
    "license": "Licence of the document.", "metadata": "Further fields of the source, as a JSON object.",
}


def croissant(name: str, *, description: str, url: str, licences: Sequence[str], published: str, version: str,
              schema: pa.Schema) -> dict[str, Any]:
    """The description; `published` is a date (ISO 8601), `schema` that of the files in `documents/`."""
    return {
        "@context": _context(),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": name, "description": description, "url": url, "license": list(licences) or ["unknown"],
        "datePublished": published, "version": version, "citeAs": f"{name}, version {version}. {url}",
        "distribution": [{
            "@type": "cr:FileSet", "@id": "documents", "name": "documents", "description": "Documents that were kept.",
            "encodingFormat": "application/x-parquet", "includes": "documents/*.parquet",
        }],
        "recordSet": [{
            "@type": "cr:RecordSet", "@id": "document", "name": "document", "key": {"@id": "document/id"},
            "description": "One row a document.", "field": [_field(field) for field in schema],
        }],
    }


def _field(field: pa.Field) -> dict[str, Any]:
    number = pa.types.is_floating(field.type)
    return {
        "@type": "cr:Field", "@id": f"document/{field.name}", "name": field.name,
        "description": _WHAT.get(field.name, f"The measure {field.name}." if number else f"The column {field.name}."),
        "dataType": "sc:Float" if number else "sc:Text",
        "source": {"fileSet": {"@id": "documents"}, "extract": {"column": field.name}},
    }


def _context() -> dict[str, Any]:
    """The vocabulary of Croissant, as its specification asks every file to carry it."""
    terms: dict[str, Any] = {name: f"cr:{name}" for name in _TERMS}
    terms |= {
        "@language": "en", "@vocab": "https://schema.org/", "sc": "https://schema.org/",
        "cr": "http://mlcommons.org/croissant/", "dct": "http://purl.org/dc/terms/", "conformsTo": "dct:conformsTo",
        "rai": "http://mlcommons.org/croissant/RAI/", "equivalentProperty": "cr:equivalentProperty",
        "data": {"@id": "cr:data", "@type": "@json"}, "examples": {"@id": "cr:examples", "@type": "@json"},
        "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    }
    return terms
