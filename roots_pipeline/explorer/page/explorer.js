// The explorer's page. Whatever comes from documents is put into text nodes only.
"use strict";

const $ = (id) => document.getElementById(id);
const ALL = "";
let corpus;
let limits = []; // of each stage: {language: {measure: [low, high] or null}}, what was changed
const words = {};
let seed = 0;
let asking = null;
let again = false;

async function post(path, question) {
  const answer = await fetch(path, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(question),
  });
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.error);
  return value;
}

function failed(error) {
  $("error").textContent = error.message;
  $("error").hidden = false;
}

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function row(cells, className) {
  const made = element("tr", null, className);
  cells.forEach((cell, place) => made.append(element(place ? "td" : "th", cell, place ? "number" : "")));
  return made;
}

const count = (number) => number.toLocaleString("en");
const bytes = (number) => (number === null ? "unknown" : count(number));
const short = (number) => (number === null || number === undefined ? "none" : String(Number(number.toPrecision(4))));

function options(select, entries) {
  const before = select.value;
  select.replaceChildren(...entries.map(([value, text]) => {
    const made = element("option", text);
    made.value = value;
    return made;
  }));
  if (entries.some(([value]) => value === before)) select.value = before;
}

const number = () => Number($("stage").value);
const stage = () => corpus.stages[number()];
const scope = () => $("language").value || "default";
const shownLanguage = () => $("language").value || null;

function limitOf(language, measure) {
  for (const name of language === "default" ? ["default"] : [language, "default"]) {
    for (const from of [limits[number()], stage().limits]) {
      const entry = (from[name] || {})[measure];
      if (entry !== undefined) return entry || [null, null];
    }
  }
  return [null, null];
}

function question(more) {
  return { stage: number(), language: shownLanguage(), measure: $("measure").value, limits: limits[number()], words, ...more };
}

// The slider goes over what the bars show.
function edges() {
  return refresh.last && refresh.last.histogram ? refresh.last.histogram : { edges: [], logarithmic: false };
}

function fromSlider(value) {
  const shown = edges();
  const low = shown.edges[0], high = shown.edges[shown.edges.length - 1], part = value / 1000;
  return shown.logarithmic ? low * (high / low) ** part : low + (high - low) * part;
}

function toPart(value) {
  const shown = edges();
  if (!shown.edges.length) return 0;
  const low = shown.edges[0], high = shown.edges[shown.edges.length - 1];
  const part = shown.logarithmic ? Math.log(Math.max(value, low) / low) / Math.log(high / low) : (value - low) / (high - low);
  return Math.min(1, Math.max(0, part));
}

function setLimit(place, value) {
  const measure = $("measure").value;
  const entry = [...limitOf(scope(), measure)];
  entry[place] = value;
  ((limits[number()][scope()] ||= {}))[measure] = entry;
  refresh();
}

function showBounds() {
  const [low, high] = limitOf(scope(), $("measure").value);
  for (const [name, value, free] of [["low", low, 0], ["high", high, 1000]]) {
    const field = $(name), slider = $(`${name}-slider`);
    if (document.activeElement !== field) field.value = value === null ? "" : value;
    if (document.activeElement !== slider) slider.value = value === null ? free : Math.round(toPart(value) * 1000);
  }
  $("scope").textContent = $("language").value
    ? `Limits of ${scope()}; where it has none of its own, those of all languages hold.`
    : "Limits of all languages that have none of their own.";
}

function drawBars(shown) {
  const svg = $("bars"), space = "http://www.w3.org/2000/svg";
  svg.replaceChildren();
  const passes = shown.parts.passes || [], limited = shown.parts.limited || [];
  const tallest = Math.max(1, ...passes.map((value, place) => value + limited[place]));
  const wide = 600 / Math.max(1, passes.length);
  const put = (kind, attributes, className) => {
    const made = document.createElementNS(space, kind);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.setAttribute("class", className);
    svg.append(made);
  };
  passes.forEach((value, place) => {
    const lower = 150 * value / tallest, upper = 150 * limited[place] / tallest;
    put("rect", { x: place * wide, y: 160 - lower, width: wide * 0.9, height: lower }, "passes");
    put("rect", { x: place * wide, y: 160 - lower - upper, width: wide * 0.9, height: upper }, "limited");
  });
  for (const bound of limitOf(scope(), $("measure").value)) {
    if (bound !== null) {
      const x = 600 * toPart(bound);
      put("line", { x1: x, x2: x, y1: 0, y2: 160 }, "bound");
    }
  }
  const [first, last] = [shown.edges[0], shown.edges[shown.edges.length - 1]];
  $("bars-text").textContent = shown.edges.length
    ? `${$("measure").value} from ${short(first)} to ${short(last)}${shown.logarithmic ? ", logarithmic" : ""}; ` +
      `lowest ${short(shown.lowest)}, highest ${short(shown.highest)}; lower part of a bar: within the limits.`
    : "no document has this measure.";
}

function showCounts(told) {
  const lines = [
    ["within these limits", told.passes], ["within the limits of the run", told.passed],
    ["newly kept", told.newly_kept], ["newly dropped", told.newly_dropped],
    ["within these limits, and not dropped by a later stage of the run", told.kept],
  ].map(([name, entry]) => row([name, count(entry.documents), bytes(entry.bytes)]));
  lines.push(row(["dropped by earlier stages", count(told.earlier), ""]));
  $("counts").tBodies[0].replaceChildren(...lines);
  const before = new Map(told.reasons_before), now = new Map(told.reasons);
  const names = [...new Set([...now.keys(), ...before.keys()])];
  $("reasons").tBodies[0].replaceChildren(...names.map((name) => row([name, count(now.get(name) || 0), count(before.get(name) || 0)])));
}

async function refresh() {
  if (asking) { again = true; return; }
  asking = true;
  try {
    const told = await post("/api/judge", question());
    refresh.last = told;
    $("error").hidden = true;
    showCounts(told);
    showBounds();
    drawBars(told.histogram);
    document.body.dataset.judged = String(Number(document.body.dataset.judged || 0) + 1);
  } catch (error) { failed(error); }
  asking = null;
  if (again) { again = false; refresh(); } else { clearTimeout(refresh.later); refresh.later = setTimeout(showDocuments, 150); }
}

async function showDocuments() {
  try {
    const found = await post("/api/documents", question({ which: $("which").value, number: 8, seed }));
    $("documents").replaceChildren(...found.map((entry) => {
      const made = element("li");
      const value = entry.value === null ? "" : `, ${$("measure").value} = ${short(entry.value)}`;
      made.append(element("div", `${entry.id} (${entry.source}, ${entry.language || "no language"}${value})`, "about"));
      made.append(element("div", `in the run: ${entry.before || "kept"}; now: ${entry.after || "kept"}`, "about"));
      const text = element("div", entry.text === null ? "(its text was not stored)" : entry.text, "text");
      text.dir = "auto";
      text.tabIndex = 0;
      made.append(text);
      return made;
    }));
    if (!found.length) $("documents").append(element("li", "none"));
  } catch (error) { failed(error); }
}

async function paste() {
  try {
    const told = await post("/api/paste", question({
      measure: null, text: $("text").value, group: $("group").value, language: $("text-language").value || null,
    }));
    $("error").hidden = true;
    const verdicts = element("ul");
    told.verdicts.forEach(([name, verdict]) => verdicts.append(element("li", `${name}: ${verdict ? `dropped, ${verdict}` : "kept"}`)));
    const table = element("table");
    told.measures.filter((entry) => entry.value !== null).forEach((entry) => table.append(row(
      [entry.name, typeof entry.value === "number" ? short(entry.value) : entry.value, `${short(entry.minimum)} to ${short(entry.maximum)}`],
      entry.outside ? "outside" : "")));
    $("pasted").replaceChildren(element("p", `language: ${told.language || "none"}`), verdicts, table);
    if (told.left_out.length) $("pasted").append(element("p", `not for a single text: ${told.left_out.join(", ")}.`, "note"));
  } catch (error) { failed(error); }
}

async function exportRecipe() {
  try {
    const told = await post("/api/recipe", question({ measure: null }));
    $("recipe").textContent = told.recipe;
    $("recipe").hidden = false;
    URL.revokeObjectURL($("download").href);
    $("download").href = URL.createObjectURL(new Blob([told.recipe], { type: "text/yaml" }));
    $("download").hidden = false;
  } catch (error) { failed(error); }
}

function chooseStage() {
  options($("language"), [[ALL, "all"], ...stage().languages.map(([code, documents]) => [code, `${code} (${count(documents)})`])]);
  const limited = stage().limited, others = corpus.measures.filter((name) => !limited.includes(name));
  options($("measure"), [...limited.map((name) => [name, name]), ...others.map((name) => [name, `${name} (no limit)`])]);
  refresh();
}

async function begin() {
  try {
    corpus = await (await fetch("/api/corpus")).json();
  } catch (error) { failed(error); return; }
  const part = corpus.every > 1 ? `, every ${corpus.every}th part of ${count(corpus.read)}` : "";
  $("corpus").textContent = `${corpus.folder}: ${count(corpus.documents)} documents${part}`;
  limits = corpus.stages.map(() => ({}));
  options($("stage"), corpus.stages.map((entry) => [String(entry.number), entry.groups ? entry.groups.join(", ") : "all groups"]));
  $("stage-label").hidden = corpus.stages.length < 2;
  options($("group"), corpus.groups.map((name) => [name, name]));
  options($("words-language"), Object.keys(corpus.words).sort().map((name) => [name, name]));
  const showWords = () => { $("words").value = (words[$("words-language").value] || corpus.words[$("words-language").value] || []).join("\n"); };
  showWords();
  document.querySelector("main").hidden = false;
  $("stage").onchange = chooseStage;
  for (const name of ["language", "measure"]) $(name).onchange = refresh;
  ["low", "high"].forEach((name, place) => {
    $(`${name}-slider`).oninput = (event) => setLimit(place, Number(fromSlider(Number(event.target.value)).toPrecision(4)));
    $(name).onchange = (event) => setLimit(place, event.target.value === "" ? null : Number(event.target.value));
  });
  $("undo").onclick = () => { delete (limits[number()][scope()] || {})[$("measure").value]; refresh(); };
  $("undo-all").onclick = () => { limits[number()] = {}; refresh(); };
  $("which").onchange = showDocuments;
  $("draw").onclick = () => { seed += 1; showDocuments(); };
  $("ask").onclick = paste;
  $("words-language").onchange = showWords;
  $("words").onchange = () => { words[$("words-language").value] = $("words").value.split("\n").map((word) => word.trim()).filter(Boolean); };
  $("export").onclick = exportRecipe;
  chooseStage();
}

begin();
