"""The explorer's web server: one page, and JSON for what it asks.

It answers on the loopback interface only, and only to a page of its own: requests that name another host are refused
(or a foreign page could reach it by a name that it turns to 127.0.0.1), and what is sent must be JSON, which no foreign
page can send without asking first. The page may load nothing but its own script and style, and strings of documents
only ever become text nodes.

    GET  /               the page
    GET  /api/corpus     stages, measures, languages, word lists
    POST /api/judge      counts and a histogram under changed limits
    POST /api/documents  random documents of one kind
    POST /api/paste      every measure and verdict of a text
    POST /api/recipe     the changes as a recipe
"""

from __future__ import annotations

import logging
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import uvicorn
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from roots_pipeline.core.errors import RecipeError, RootbloomError, StorageError
from roots_pipeline.explorer.export import as_yaml, recipe_of, with_limits, with_words
from roots_pipeline.explorer.judging import Choice, Judge, Judgement, Mask, histogram
from roots_pipeline.explorer.pasted import judge_text
from roots_pipeline.explorer.table import read_measures
from roots_pipeline.report.safe_text import visible
from roots_pipeline.rules.columns import DEFAULT, floats, language_code
from roots_pipeline.rules.thresholds import Limits

HOST = "127.0.0.1"
_PAGE = Path(__file__).parent / "page"
_FILES = {"/": ("explorer.html", "text/html"), "/explorer.js": ("explorer.js", "text/javascript"),
          "/explorer.css": ("explorer.css", "text/css")}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                               "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
}
_MAXIMUM_BODY = 8_000_000
_EXCERPT = 2000

Bound = Annotated[float, Field(allow_inf_nan=False)] | None


class _Question(BaseModel):
    model_config = ConfigDict(extra="forbid")

    stage: Annotated[int, Field(ge=0)] = 0
    language: str | None = None
    measure: str | None = None
    limits: dict[str, dict[str, tuple[Bound, Bound] | None]] = {}
    words: dict[str, list[str]] = {}


class _Documents(_Question):
    which: Literal["kept", "dropped", "newly kept", "newly dropped"] = "newly dropped"
    number: Annotated[int, Field(ge=1, le=100)] = 10
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0


class _Paste(_Question):
    text: str
    group: str = "web"


class Explorer:
    """What the page can ask of one finished corpus. Raises StaleDataError or RecipeError if it has no limits."""

    def __init__(self, folder: str) -> None:
        self.table = read_measures(folder)
        self.recipe = recipe_of(self.table.manifest)
        self.judge = Judge(self.table, self.recipe)
        self._as_run = [self.judge.judge(number) for number in range(len(self.judge.choices))]

    def corpus(self) -> dict[str, Any]:
        """What there is to choose from."""
        stages = []
        for number, choice in enumerate(self.judge.choices):
            languages: Counter[str] = Counter()
            counted = self.table.table.column("language").take(pa.array(choice.rows)).value_counts()
            for entry in counted.to_pylist():
                languages[language_code(entry["values"]) if entry["values"] is not None else DEFAULT] += entry["counts"]
            stages.append({
                "number": number, "groups": choice.groups, "languages": languages.most_common(),
                "limited": choice.stage.measures, "limits": choice.stage.limits,
            })
        return {
            "folder": self.table.folder, "documents": len(self.table.table), "every": self.table.every,
            "read": self.table.manifest.counts["read"], "measures": self.table.measures, "stages": stages,
            "groups": sorted({entry.group for entry in self.recipe.sources}), "words": self._word_lists(),
        }

    def counts(self, question: _Question) -> dict[str, Any]:
        """Documents and bytes within and outside the limits, now and in the run, and the bars of one measure."""
        choice, before, after, mine = self._judged(question)
        size = self.table.table.column("bytes").take(pa.array(choice.rows))
        told = {
            "documents": int(mine.sum()), "passes": _sum(after.passes & mine, size),
            "passed": _sum(before.passes & mine, size), "earlier": int((mine & ~after.open).sum()),
            "newly_kept": _sum(mine & after.passes & before.limited, size),
            "newly_dropped": _sum(mine & after.limited & before.passes, size),
            "kept": _sum(mine & pc.is_null(after.verdict).to_numpy(zero_copy_only=False), size),
            "reasons": _reasons(after, mine), "reasons_before": _reasons(before, mine),
        }
        if question.measure is not None:
            if question.measure not in self.table.measures:
                raise RecipeError(f"there is no measure '{question.measure}' in this corpus.")
            values = floats(self.table.table.column(question.measure).take(pa.array(choice.rows)))
            parts = {"passes": mine & after.passes, "limited": mine & after.limited}
            told["histogram"] = histogram(values, parts)
        return told

    def documents(self, question: _Documents) -> list[dict[str, Any]]:
        """Random documents of a kind; equal seeds draw equal ones."""
        choice, before, after, mine = self._judged(question)
        kept = pc.is_null(after.verdict).to_numpy(zero_copy_only=False)
        kinds = {"kept": kept, "dropped": after.limited, "newly kept": after.passes & before.limited,
                 "newly dropped": after.limited & before.passes}
        found = np.flatnonzero(kinds[question.which] & mine)
        dice = np.random.default_rng(question.seed)
        drawn = np.sort(dice.permutation(len(found))[: question.number])
        rows = choice.rows[found[drawn]]
        texts = self.table.texts(rows.tolist())
        told = []
        for place, row, text in zip(found[drawn].tolist(), rows.tolist(), texts, strict=True):
            entry = {name: self.table.table.column(name)[row].as_py() for name in ("id", "source", "language")}
            value = self.table.table.column(question.measure)[row].as_py() if question.measure else None
            told.append({
                **{name: None if part is None else visible(part, 300) for name, part in entry.items()},
                "value": None if value is None or not np.isfinite(value) else value,
                "before": before.verdict[place].as_py(), "after": after.verdict[place].as_py(),
                "text": None if text is None else visible(text, _EXCERPT),
            })
        return told

    def paste(self, question: _Paste) -> dict[str, Any]:
        """What the recipe, with the changes, says of a text."""
        if question.group not in {entry.group for entry in self.recipe.sources}:
            raise RecipeError(f"no source of this corpus belongs to a group '{question.group}'.")
        pasted = judge_text(question.text, self.changed(question), group=question.group, language=question.language)
        return {**asdict(pasted), "text": visible(pasted.text, _EXCERPT),
                "measures": [{**asdict(measure), "outside": measure.outside} for measure in pasted.measures]}

    def changed(self, question: _Question) -> Any:
        """The recipe with the changes of a question."""
        recipe = with_limits(self.recipe, self._choice(question).index, _limits(question))
        for index in self._listing():
            if question.words:
                recipe = with_words(recipe, index, question.words)
        return recipe

    def _judged(self, question: _Question) -> tuple[Choice, Judgement, Judgement, Mask]:
        choice = self._choice(question)
        before = self._as_run[question.stage]
        after = self.judge.judge(question.stage, _limits(question)) if question.limits else before
        return choice, before, after, self.judge.rows_of(question.stage, question.language)

    def _choice(self, question: _Question) -> Choice:
        if question.stage >= len(self.judge.choices):
            count = len(self.judge.choices)
            raise RecipeError(f"there is none of number {question.stage} among {count} stages with limits.")
        return self.judge.choices[question.stage]

    def _listing(self) -> list[int]:
        """The places of stages with lists of stop words in the recipe."""
        return [index for index, entry in enumerate(self.recipe.stages)
                if isinstance(getattr(entry.made, "stop_words", None), dict)]

    def _word_lists(self) -> dict[str, list[str]]:
        return {language: words for index in self._listing()
                for language, words in getattr(self.recipe.stages[index].made, "stop_words", {}).items()}


def _limits(question: _Question) -> Limits:
    return dict(question.limits)


def _sum(mask: Mask, size: pa.ChunkedArray) -> dict[str, int | None]:
    """Documents and bytes; null if the size of one of them is not known."""
    chosen = size.filter(pa.array(mask))
    known = chosen.null_count == 0
    return {"documents": int(mask.sum()), "bytes": (pc.sum(chosen).as_py() or 0) if known else None}


def _reasons(judgement: Judgement, mine: Mask) -> list[tuple[str, int]]:
    """The measures that drop documents, most first."""
    counted = judgement.verdict.filter(pa.array(judgement.limited & mine)).value_counts().to_pylist()
    return sorted(((entry["values"], entry["counts"]) for entry in counted), key=lambda item: (-item[1], item[0]))


def make_app(explorer: Explorer) -> Starlette:
    """The web application."""
    questions: dict[str, tuple[type[_Question], Callable[[Any], Any]]] = {
        "/api/judge": (_Question, explorer.counts), "/api/documents": (_Documents, explorer.documents),
        "/api/paste": (_Paste, explorer.paste),
        "/api/recipe": (_Question, lambda question: {"recipe": as_yaml(explorer.changed(question))}),
    }

    async def file(request: Request) -> Response:
        name, kind = _FILES[request.url.path]
        return Response((_PAGE / name).read_bytes(), media_type=kind, headers=_HEADERS)

    async def corpus(request: Request) -> Response:
        return _json(await run_in_threadpool(explorer.corpus))

    async def ask(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return _json({"error": "a question must be sent as application/json."}, 415)
        model, answer = questions[request.url.path]
        try:
            question = model.model_validate(orjson.loads(await _body(request)))
            return _json(await run_in_threadpool(answer, question))
        except ClientDisconnect:
            return Response(status_code=499)
        except ValidationError as error:
            first = error.errors()[0]
            return _json({"error": f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"}, 400)
        except orjson.JSONDecodeError as error:
            return _json({"error": f"not JSON: {error}"}, 400)
        except RootbloomError as error:
            return _json({"error": str(error)}, 400)

    routes = [Route("/api/corpus", corpus), *(Route(path, file) for path in _FILES),
              *(Route(path, ask, methods=["POST"]) for path in questions)]
    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"], www_redirect=False)
    return Starlette(routes=routes, middleware=[hosts])


async def _body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MAXIMUM_BODY:
            raise RecipeError(f"the question is larger than {_MAXIMUM_BODY:,} bytes.")
    return body


def _json(value: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, {**_HEADERS}, "application/json")


def serve(folder: str, port: int) -> None:
    """Serve the explorer of a corpus until it is interrupted; port 0 takes a free one. Raises StorageError if taken."""
    app = make_app(Explorer(folder))
    server = uvicorn.Server(uvicorn.Config(app, host=HOST, port=port, log_level=logging.WARNING, lifespan="off"))
    bound = _bound(port)
    print(f"explorer: http://{HOST}:{bound.getsockname()[1]}/  (Ctrl-C ends it)", flush=True)
    server.run(sockets=[bound])


def _bound(port: int) -> socket.socket:
    bound = socket.socket()
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((HOST, port))
    except OSError as error:
        raise StorageError(f"port {port} cannot be used ({error.strerror}).",
                           hint="Name another one with --port, or 0 for a free one.") from error
    return bound
