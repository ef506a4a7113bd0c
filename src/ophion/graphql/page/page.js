"use strict";

const byId = (id) => document.getElementById(id);
const query = byId("query"), variables = byId("variables"), answer = byId("answer"), status = byId("status");
const hints = byId("hints"), examples = byId("examples"), search = byId("search"), token = byId("token");

const EXAMPLES = {
  "Newest block": ["{\n  block {\n    number\n    hash\n    timestamp\n    transactionCount\n    gasUsed\n    gasLimit\n    miner {\n      address\n    }\n  }\n}", ""],
  "A range of blocks": ["query Range($from: Long!, $to: Long) {\n  blocks(from: $from, to: $to) {\n    number\n    transactions {\n      hash\n      from {\n        address\n      }\n      value\n      status\n    }\n  }\n}", '{\n  "from": 0,\n  "to": 10\n}'],
  "An account": ["query Account($address: Address!) {\n  account(address: $address) {\n    balance\n    transactionCount\n    code\n  }\n}", '{\n  "address": "0xfe3b557e8fb62b89f4916b721be55ceb828dbd73"\n}'],
  "Logs of the newest block": ["{\n  block {\n    logs(filter: {}) {\n      index\n      account {\n        address\n      }\n      topics\n      data\n    }\n  }\n}", ""],
  "Waiting transactions": ["{\n  pending {\n    transactionCount\n    transactions {\n      hash\n      nonce\n    }\n  }\n  gasPrice\n}", ""],
};

const TYPE_REF = "kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } }";
const INTROSPECTION = `query Schema { __schema { queryType { name } mutationType { name } types { kind name description
  fields(includeDeprecated: true) { name description args { name description type { ${TYPE_REF} } } type { ${TYPE_REF} } }
  inputFields { name description type { ${TYPE_REF} } } enumValues { name description } } } }`;

/* --- asking ------------------------------------------------------------------------------------ */

async function ask(text, values) {
  const headers = { "Content-Type": "application/json", "Accept": "application/json" };
  if (token.value) headers.Authorization = "Bearer " + token.value;
  const body = { query: text };
  if (values) body.variables = values;
  const response = await fetch("/graphql", { method: "POST", headers, body: JSON.stringify(body) });
  return { code: response.status, text: await response.text() };
}

async function run() {
  let values = null;
  hints.hidden = true;
  try {
    values = variables.value.trim() ? JSON.parse(variables.value) : null;
  } catch (error) {
    status.textContent = "The variables are no JSON: " + error.message;
    return;
  }
  status.textContent = "…";
  const start = performance.now();
  try {
    const { code, text } = await ask(query.value, values);
    show(text);
    status.textContent = `${code} · ${(performance.now() - start).toFixed(1)} ms · ${text.length} bytes`;
  } catch (error) {
    status.textContent = "No answer: " + error.message;
  }
  keep();
}

function show(text) {
  answer.replaceChildren();
  let shown = text;
  try {
    shown = JSON.stringify(JSON.parse(text, bigNumbers), null, 2);
  } catch { /* shown as it is */ }
  const pattern = /("(?:[^"\\]|\\.)*")(\s*:)?|-?\d[\d.eE+-]*|\b(?:true|false|null)\b/g;
  let last = 0;
  for (const match of shown.matchAll(pattern)) {
    answer.append(shown.slice(last, match.index));
    const part = document.createElement("span");
    part.className = match[2] ? "key" : match[1] ? "text" : "number";
    part.textContent = match[0];
    answer.append(part);
    last = match.index + match[0].length;
  }
  answer.append(shown.slice(last));
}

/* Integers above 2^53 would lose digits; where the browser tells the written form, that is shown. */
function bigNumbers(key, value, context) {
  if (typeof value === "number" && !Number.isSafeInteger(value) && context && JSON.rawJSON) return JSON.rawJSON(context.source);
  return value;
}

function keep() {
  try {
    localStorage.setItem("ophion-graphql", JSON.stringify([query.value, variables.value]));
  } catch { /* nothing is kept */ }
}

/* --- the document ------------------------------------------------------------------------------ */

function tidy(text) {
  const tokens = text.match(/"""[^]*?"""|"(?:[^"\\\n]|\\.)*"|#[^\n]*|\.\.\.|[{}()[\]:,!=|@&$]|[^\s{}()[\]:,!=|@&$"#]+/g) || [];
  let out = "", depth = 0, inner = 0, fresh = true;
  const line = () => { out = out.trimEnd() + "\n" + "  ".repeat(depth); fresh = true; };
  for (let at = 0; at < tokens.length; at++) {
    const one = tokens[at], before = tokens[at - 1];
    if (inner) {
      if (/^[)\]]$/.test(one) || (one === "}" && inner)) inner--;
      else if (/^[([{]$/.test(one)) { inner++; if (one === "{" && before === ":") out += " "; }
      else if (one === ",") { out += ", "; continue; }
      else if (/^[\w$"-]/.test(one) && before && /[\w"\])}!]$/.test(before) && !/[ ([]$/.test(out)) out += ", ";
      out += one + (one === ":" ? " " : "");
      fresh = false;
    } else if (one === "{") { depth++; out = out.trimEnd() + (out ? " {" : "{"); line(); }
    else if (one === "}") { depth = Math.max(0, depth - 1); line(); out += "}"; depth ? line() : (out += "\n"); }
    else if (one === "(") { inner++; out = out.trimEnd() + "("; fresh = false; }
    else if (one.startsWith("#")) { out += one; line(); }
    else if (one === ":") { out = out.trimEnd() + ": "; fresh = true; }
    else if (one === ",") continue;
    else {
      const joins = fresh || before === "..." || before === "@" || one === ")" || !depth || one === "@" || before === "on" || one === "on";
      if (!joins) line();
      else if (!fresh && before !== "..." && before !== "@") out += " ";
      out += one;
      fresh = false;
    }
  }
  return out.replace(/\n\s*\n/g, "\n").trim() + "\n";
}

function insert(text) {
  query.setRangeText(text, query.selectionStart, query.selectionEnd, "end");
  query.focus();
}

/* --- the schema -------------------------------------------------------------------------------- */

const types = new Map();
let roots = [];

const named = (type) => (type.ofType ? named(type.ofType) : type.name);
const written = (type) => type.kind === "NON_NULL" ? written(type.ofType) + "!" : type.kind === "LIST" ? `[${written(type.ofType)}]` : type.name;

async function loadSchema() {
  try {
    const { text } = await ask(INTROSPECTION);
    const schema = JSON.parse(text).data.__schema;
    types.clear();
    for (const type of schema.types) if (!type.name.startsWith("__")) types.set(type.name, type);
    roots = [schema.queryType, schema.mutationType].filter(Boolean).map((type) => type.name);
    openType(null);
  } catch (error) {
    byId("schema").textContent = "The schema could not be read: " + error.message;
  }
}

function link(text, act, kind) {
  const one = document.createElement("a");
  one.textContent = text;
  one.className = kind || "type";
  one.addEventListener("click", act);
  return one;
}

function typeLink(type) {
  return link(written(type), () => openType(named(type)));
}

function fieldTitle(field) {
  const title = document.createElement("dt");
  title.append(link(field.name, () => insert(field.name + " "), "field"));
  if (field.args && field.args.length) {
    title.append("(");
    field.args.forEach((argument, at) => title.append(at ? ", " : "", argument.name, ": ", typeLink(argument.type)));
    title.append(")");
  }
  if (field.type) title.append(": ", typeLink(field.type));
  return title;
}

function describe(list, text) {
  const item = document.createElement("dd");
  item.textContent = text || "";
  list.append(item);
}

function openType(name) {
  const list = document.createElement("dl"), trail = byId("trail");
  trail.replaceChildren(link("all types", () => openType(null)));
  const type = types.get(name);
  if (type) {
    trail.append(" / " + name);
    describe(list, type.description);
    for (const field of [...(type.fields || []), ...(type.inputFields || []), ...(type.enumValues || [])]) {
      list.append(fieldTitle(field));
      describe(list, field.description);
    }
  } else {
    const order = [...roots, ...[...types.keys()].filter((one) => !roots.includes(one)).sort()];
    for (const one of order) {
      const title = document.createElement("dt");
      title.append(link(one, () => openType(one)));
      list.append(title);
      describe(list, types.get(one).description);
    }
  }
  byId("schema").replaceChildren(list);
}

function find() {
  const wanted = search.value.trim().toLowerCase();
  if (!wanted) return openType(null);
  const list = document.createElement("dl");
  for (const type of types.values()) {
    for (const field of [...(type.fields || []), ...(type.inputFields || [])]) {
      if (!`${type.name}.${field.name}`.toLowerCase().includes(wanted)) continue;
      const title = fieldTitle(field);
      title.prepend(link(type.name, () => openType(type.name)), ".");
      list.append(title);
      describe(list, field.description);
    }
  }
  byId("schema").replaceChildren(list);
}

/* --- hints ------------------------------------------------------------------------------------- */

/* The type whose fields may stand at the cursor: braces are followed from the beginning, arguments passed over. */
function typeAt(text) {
  const stack = [];
  let last = roots[0], pending = last;
  const tokens = text.match(/"(?:[^"\\\n]|\\.)*"|#[^\n]*|[{}()]|\.\.\.|:|[_A-Za-z]\w*/g) || [];
  for (let at = 0, inner = 0; at < tokens.length; at++) {
    const one = tokens[at];
    if (one === "(") inner++;
    else if (one === ")") inner--;
    else if (inner || one.startsWith("#") || one.startsWith('"')) continue;
    else if (one === "{") { stack.push(last); last = pending; }
    else if (one === "}") { last = stack.pop(); pending = last; }
    else if (one === "mutation" && !stack.length) pending = roots[1] || roots[0];
    else if (one === "query" && !stack.length) pending = roots[0];
    else if (tokens[at - 1] === "on") pending = one;
    else if (stack.length) {
      const field = (types.get(last)?.fields || []).find((known) => known.name === one);
      if (field) pending = named(field.type);
    }
  }
  return stack.length ? last : null;
}

let offered = [], chosen = 0;

function offer() {
  const before = query.value.slice(0, query.selectionStart);
  const word = /[_A-Za-z]\w*$/.exec(before)?.[0] || "";
  const type = word && types.get(typeAt(before.slice(0, before.length - word.length)));
  offered = (type?.fields || []).map((field) => field.name).filter((name) => name.startsWith(word) && name !== word);
  hints.hidden = !offered.length;
  chosen = 0;
  hints.replaceChildren(...offered.map((name, at) => {
    const item = document.createElement("li");
    item.textContent = name;
    item.addEventListener("mousedown", (event) => { event.preventDefault(); take(at); });
    return item;
  }));
  mark();
}

function mark() {
  [...hints.children].forEach((item, at) => item.classList.toggle("chosen", at === chosen));
  hints.children[chosen]?.scrollIntoView({ block: "nearest" });
}

function take(at) {
  const end = query.selectionStart;
  const word = /[_A-Za-z]\w*$/.exec(query.value.slice(0, end))?.[0] || "";
  query.setRangeText(offered[at], end - word.length, end, "end");
  hints.hidden = true;
}

function typed(event) {
  if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
    event.preventDefault();
    run();
  } else if (event.currentTarget !== query) {
    return;
  } else if (!hints.hidden && ["ArrowDown", "ArrowUp", "Enter", "Tab", "Escape"].includes(event.key)) {
    event.preventDefault();
    if (event.key === "Escape") hints.hidden = true;
    else if (event.key === "Enter" || event.key === "Tab") take(chosen);
    else { chosen = (chosen + (event.key === "ArrowDown" ? 1 : offered.length - 1)) % offered.length; mark(); }
  } else if (event.key === "Enter") {
    const line = query.value.slice(0, query.selectionStart).split("\n").pop();
    const indent = /^\s*/.exec(line)[0] + (/[{(]\s*$/.test(line) ? "  " : "");
    event.preventDefault();
    query.setRangeText("\n" + indent, query.selectionStart, query.selectionEnd, "end");
  } else if (event.key === "Tab" && !event.shiftKey) {
    event.preventDefault();
    query.setRangeText("  ", query.selectionStart, query.selectionEnd, "end");
  }
}

/* --- beginning --------------------------------------------------------------------------------- */

function begin() {
  for (const name of ["Examples", ...Object.keys(EXAMPLES)]) examples.append(new Option(name, name));
  examples.addEventListener("change", () => {
    const example = EXAMPLES[examples.value];
    if (example) [query.value, variables.value] = example;
    examples.selectedIndex = 0;
  });
  byId("run").addEventListener("click", run);
  byId("tidy").addEventListener("click", () => { query.value = tidy(query.value); });
  search.addEventListener("input", find);
  for (const field of [query, variables]) field.addEventListener("keydown", typed);
  query.addEventListener("input", offer);
  query.addEventListener("blur", () => { hints.hidden = true; });
  token.addEventListener("change", loadSchema);
  [query.value, variables.value] = EXAMPLES["Newest block"];
  try {
    const before = JSON.parse(localStorage.getItem("ophion-graphql"));
    if (before) [query.value, variables.value] = before;
  } catch { /* begins with the example */ }
  const given = new URLSearchParams(location.hash.slice(1)).get("query");
  if (given) query.value = given;
  loadSchema();
}

begin();
