/* GraphQL editor: highlighting, completion, error checking, variables, answer, schema.
 * Used by the playground and by the GraphQL port. */

import { h, put, say } from "../lib/dom.js";
import { bytes } from "../lib/format.js";
import { json } from "../lib/values.js";
import { completions, mistakes, tokens } from "./document.js";
import { EXAMPLES } from "./examples.js";
import { explorer, INTROSPECTION, schemaOf } from "./schema.js";
import { formatDocument } from "./formatter.js";

const KEY = "ophion-graphql", PAUSE_MS = 150, MAX_OFFERED = 40;

/** Build the editor in `root`; it sends queries to `address` with `headers()`. */
export function editor(root, { address, headers, extra }) {
  const query = h("textarea", { id: "query", spellcheck: "false", autocomplete: "off", autocapitalize: "off", "aria-describedby": "mistakes", "aria-controls": "hints", "aria-autocomplete": "list" });
  const shade = h("pre.shade", { "aria-hidden": "true" }), hints = h("ul", { id: "hints", role: "listbox", "aria-label": "Completions", hidden: true });
  const variables = h("textarea", { id: "variables", spellcheck: "false", autocomplete: "off", rows: "4" });
  const problems = h("ul.mistakes", { id: "mistakes" }), answer = h("pre.box", { id: "answer", tabindex: "0", role: "region", "aria-label": "Answer" }), status = h("span.soft", { id: "status", role: "status" });
  const examples = h("select", { id: "examples", "aria-label": "Examples" }, ["Examples", ...Object.keys(EXAMPLES)].map((name) => h("option", { value: name }, name)));
  const panel = explorer((text) => { query.setRangeText(text, query.selectionStart, query.selectionEnd, "end"); query.focus(); changed(); });
  let schema = null, offered = { from: 0, words: [] }, chosen = 0, timer = null;

  put(root, h("div.graphql",
    h("section.card.ask",
      h("div.row", h("button.main", { id: "run", type: "button", title: "Ctrl+Enter", onclick: run }, "Run"), h("button", { id: "format", type: "button", title: "Indent the document", onclick: () => { query.value = formatDocument(query.value); changed(); } }, "Format"), examples),
      h("label", { for: "query" }, "Document"), h("div.sheet", shade, query, hints), h("div", { role: "status" }, problems),
      h("label", { for: "variables" }, "Variables (JSON)"), variables, extra || null),
    h("section.card.answer", h("div.row.spread", h("h2", "Answer"), status), answer),
    h("div.card", panel.element)));

  /* --- requests --- */

  async function ask(text, values) {
    const body = values ? { query: text, variables: values } : { query: text };
    const response = await fetch(address, { method: "POST", headers: headers(), body: JSON.stringify(body) });
    return { code: response.status, text: await response.text() };
  }

  async function run() {
    let values = null;
    close();
    try {
      values = variables.value.trim() ? JSON.parse(variables.value) : null;
    } catch (error) {
      say(status, `The variables are not valid JSON: ${error.message}`);
      return;
    }
    say(status, "…");
    const begun = performance.now();
    try {
      const { code, text } = await ask(query.value, values);
      put(answer, json(pretty(text)));
      say(status, `${code} · ${(performance.now() - begun).toFixed(1)} ms · ${bytes(text.length)}`);
    } catch (error) {
      say(status, `No answer: ${error.message}`);
    }
    try {
      localStorage.setItem(KEY, JSON.stringify([query.value, variables.value]));
    } catch { /* the browser blocks storage: the text is not saved */ }
  }

  /** Load the schema with the current token. */
  async function load() {
    try {
      const { code, text } = await ask(INTROSPECTION);
      if (code !== 200) throw new Error(code === 401 ? "a token is required" : `status ${code}`);
      schema = schemaOf(JSON.parse(text).data.__schema);
      panel.show(schema);
      check();
    } catch (error) {
      panel.fail(`The schema could not be read: ${error.message}`);
    }
  }

  /* --- typing --- */

  function changed() {
    paint([]);
    clearTimeout(timer);
    timer = setTimeout(check, PAUSE_MS);
  }

  function check() {
    const found = mistakes(query.value, schema);
    paint(found);
    query.setAttribute("aria-invalid", String(found.length > 0));
    put(problems, found.slice(0, 5).map((one) => h("li", h("button.link", { type: "button", onclick: () => { query.focus(); query.setSelectionRange(one.start, one.end); } }, place(query.value, one.start)), ` ${one.message}`)));
  }

  /** Draw the highlighted text behind the text area, whose own text is transparent. */
  function paint(found) {
    const text = query.value, parts = [];
    let last = 0, depth = 0;
    for (const one of tokens(text)) {
      if (one.text === "(") depth++;
      else if (one.text === ")") depth--;
      const kind = one.kind === "name" ? (depth ? "argument" : "name") : one.kind, isWrong = found.some((mistake) => one.start < mistake.end && one.end > mistake.start);
      parts.push(text.slice(last, one.start), h(`span.${kind}${isWrong ? ".wrong" : ""}`, one.text));
      last = one.end;
    }
    put(shade, parts, text.slice(last), "\n");
    follow();
  }

  function follow() {
    shade.scrollTop = query.scrollTop;
    shade.scrollLeft = query.scrollLeft;
  }

  function offer() {
    offered = schema && query.selectionStart === query.selectionEnd ? completions(query.value, query.selectionStart, schema) : { from: 0, words: [] };
    offered.words = offered.words.slice(0, MAX_OFFERED);
    hints.hidden = !offered.words.length;
    chosen = 0;
    put(hints, offered.words.map((word, at) => h("li", { role: "option", id: `hint-${at}`, onmousedown: (event) => { event.preventDefault(); take(at); } }, h("span", word.text), word.note ? h("small", word.note) : null)));
    if (!hints.hidden) {
      const line = query.value.slice(0, offered.from).split("\n").length;
      hints.style.top = `${Math.min(line * 20.15 + 14 - query.scrollTop, query.clientHeight)}px`;
    }
    mark();
  }

  function close() {
    hints.hidden = true;
    query.removeAttribute("aria-activedescendant");
  }

  function mark() {
    [...hints.children].forEach((item, at) => item.setAttribute("aria-selected", String(at === chosen)));
    if (hints.hidden) return query.removeAttribute("aria-activedescendant");
    query.setAttribute("aria-activedescendant", `hint-${chosen}`);
    const item = hints.children[chosen];
    hints.scrollTop = Math.max(0, item.offsetTop - hints.clientHeight + item.offsetHeight + 4);
    return null;
  }

  function take(at) {
    query.setRangeText(offered.words[at].text, offered.from, query.selectionStart, "end");
    close();
    changed();
  }

  function typed(event) {
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
      event.preventDefault();
      run();
    } else if (event.currentTarget !== query) {
      return;
    } else if (!hints.hidden && ["ArrowDown", "ArrowUp", "Enter", "Tab", "Escape"].includes(event.key)) {
      event.preventDefault();
      if (event.key === "Escape") close();
      else if (event.key === "Enter" || event.key === "Tab") take(chosen);
      else {
        chosen = (chosen + (event.key === "ArrowDown" ? 1 : offered.words.length - 1)) % offered.words.length;
        mark();
      }
    } else if (event.key === "Enter") {
      const line = query.value.slice(0, query.selectionStart).split("\n").pop(), indent = /^\s*/.exec(line)[0] + (/[{(]\s*$/.test(line) ? "  " : "");
      event.preventDefault();
      query.setRangeText("\n" + indent, query.selectionStart, query.selectionEnd, "end");
      changed();
    }
  }

  /* --- start --- */

  examples.addEventListener("change", () => {
    const example = EXAMPLES[examples.value];
    if (example) [query.value, variables.value] = example;
    examples.selectedIndex = 0;
    changed();
  });
  for (const field of [query, variables]) field.addEventListener("keydown", typed);
  query.addEventListener("input", () => { changed(); offer(); });
  query.addEventListener("scroll", follow);
  query.addEventListener("blur", close);
  [query.value, variables.value] = EXAMPLES["Newest block"];
  try {
    const before = JSON.parse(localStorage.getItem(KEY));
    if (before) [query.value, variables.value] = before;
  } catch { /* no saved text: start with the example */ }
  const given = new URLSearchParams(location.hash.replace(/^#[^?]*\?|^#/, "")).get("query");
  if (given) query.value = given;
  paint([]);
  load();
  return Object.assign(() => clearTimeout(timer), { load });
}

const place = (text, offset) => {
  const lines = text.slice(0, offset).split("\n");
  return `${lines.length}:${lines.at(-1).length + 1}`;
};

/** Format JSON. Integers above 2^53 keep their digits if the browser provides the source text. */
function pretty(text) {
  const whole = (key, value, context) => (typeof value === "number" && !Number.isSafeInteger(value) && context && JSON.rawJSON ? JSON.rawJSON(context.source) : value);
  try {
    return JSON.stringify(JSON.parse(text, whole), null, 2);
  } catch {
    return text;
  }
}
