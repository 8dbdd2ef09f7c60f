"""Which programming language a source file is in, by the suffix of its name. Suffixes are case-sensitive.

`common` covers the thirteen languages of the sample corpus with their usual suffixes. `roots` is the list
of the query that drew ROOTS's code from GitHub (data-preparation repository,
sourcing/code_dataset/query.sql): it lacks `.c` and `.h`, so what its statistics call C is `.C`, which is
C++.
"""

from __future__ import annotations

COMMON = {
    ".c": "c", ".h": "c",
    ".C": "cpp", ".H": "cpp", ".c++": "cpp", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp",
    ".h++": "cpp", ".hh": "cpp", ".hpp": "cpp", ".hxx": "cpp",
    ".cs": "csharp",
    ".go": "go",
    ".java": "java",
    ".cjs": "javascript", ".js": "javascript", ".jsx": "javascript", ".mjs": "javascript",
    ".lua": "lua",
    ".php": "php", ".php3": "php", ".php4": "php", ".php5": "php", ".phps": "php", ".phpt": "php",
    ".py": "python", ".pyi": "python",
    ".rb": "ruby",
    ".rs": "rust",
    ".scala": "scala",
    ".cts": "typescript", ".mts": "typescript", ".ts": "typescript", ".tsx": "typescript",
}

_ROOTS = (
    ".cs .cpp .hpp .c++ .h++ .cc .hh .C .H .go .java .js .lua .php .php3 .php4 .php5 .phps .phpt .py .rb .rs .scala "
    ".ts .tsx"
)
ROOTS = {suffix: COMMON[suffix] for suffix in _ROOTS.split()}

TABLES = {"common": COMMON, "roots": ROOTS}
