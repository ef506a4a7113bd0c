/*
 * GraphQL documents: tokenizer, parser, validation, completion. Pure functions of text and schema. Positions are
 * offsets into the text.
 */

export class Mistake extends Error {
  constructor(message, start, end) {
    super(message);
    this.start = start;
    this.end = Math.max(end, start + 1);
  }
}

const TOKEN = /[\s,\ufeff]+|#[^\n\r]*|(?<string>"""[^]*?"""|"(?:[^"\\\n]|\\.)*")|(?<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?<name>[_A-Za-z]\w*)|(?<mark>\.\.\.|[!$&()[\]{}:=@|])|(?<bad>[^])/y;
const MAX_DEPTH = 100;

/** Return the tokens {kind, text, start, end}, without comments and spaces. */
export function tokens(text) {
  const found = [];
  TOKEN.lastIndex = 0;
  for (let match; TOKEN.lastIndex < text.length && (match = TOKEN.exec(text)); ) {
    const kind = Object.entries(match.groups).find(([, value]) => value !== undefined)?.[0];
    if (kind) found.push({ kind, text: match[0], start: match.index, end: match.index + match[0].length });
  }
  return found;
}

/* --- parsing ----------------------------------------------------------------------------------- */

/** Return the definitions of a document. Throws `Mistake` at the first syntax error. */
export function parse(text) {
  const all = tokens(text), end = { kind: "end", text: "", start: text.length, end: text.length };
  let at = 0;
  const peek = () => all[at] || end, next = () => all[at++] || end;
  const isMark = (mark) => peek().kind === "mark" && peek().text === mark;
  const skip = (mark) => isMark(mark) && !!next();
  const fail = (what) => {
    const one = peek();
    throw new Mistake(one.kind === "end" ? `${what} is missing at the end` : one.kind === "bad" ? `${one.text} is not allowed here` : `${what} expected before ${one.text}`, one.kind === "end" ? Math.max(0, end.start - 1) : one.start, one.end);
  };
  const mark = (wanted) => (isMark(wanted) ? next() : fail(wanted));
  const name = () => (peek().kind === "name" ? next() : fail("a name"));
  const until = (close, read) => {
    const list = [];
    while (!isMark(close)) {
      if (peek().kind === "end") fail(close);
      list.push(read());
    }
    next();
    return list;
  };

  function document() {
    const definitions = [];
    while (peek().kind !== "end") definitions.push(definition());
    if (!definitions.length) throw new Mistake("the document is empty", 0, 1);
    return definitions;
  }

  function definition() {
    const start = peek().start;
    if (isMark("{")) return { kind: "query", name: null, variables: [], selections: selections(0), start, end: start + 1 };
    const word = name();
    if (word.text === "fragment") {
      const own = name(), on = name();
      if (on.text !== "on") throw new Mistake("on is expected", on.start, on.end);
      const type = name();
      directives();
      return { kind: "fragment", name: own.text, type, selections: selections(0), start: own.start, end: own.end };
    }
    if (!["query", "mutation", "subscription"].includes(word.text)) throw new Mistake(`${word.text} does not start an operation: expected query, mutation or fragment`, word.start, word.end);
    const own = peek().kind === "name" ? next().text : null;
    const variables = skip("(") ? until(")", variable) : [];
    directives();
    return { kind: word.text, name: own, variables, selections: selections(0), start: word.start, end: word.end };
  }

  function variable() {
    const { start } = mark("$"), own = name();
    mark(":");
    const written = type(), standard = skip("=") ? value(0) : null;
    directives();
    return { name: own.text, type: written, standard, start, end: own.end };
  }

  function type() {
    const { start } = peek(), inner = skip("[") ? { list: type(), close: mark("]") } : { name: name() };
    return { ...inner, isNeeded: skip("!"), start, end: all[at - 1].end };
  }

  function selections(depth) {
    const open = mark("{");
    if (depth > MAX_DEPTH) throw new Mistake("too many levels", open.start, open.end);
    const list = until("}", () => selection(depth));
    if (!list.length) throw new Mistake("a field is missing between the braces", open.start, open.end + 1);
    return list;
  }

  function selection(depth) {
    if (isMark("...")) {
      const { start } = next();
      if (peek().kind === "name" && peek().text !== "on") {
        const own = next();
        directives();
        return { kind: "spread", name: own.text, start: own.start, end: own.end };
      }
      const condition = peek().kind === "name" && next() ? name() : null;
      directives();
      return { kind: "inline", type: condition, selections: selections(depth + 1), start, end: start + 3 };
    }
    const first = name(), own = skip(":") ? name() : first, args = skip("(") ? until(")", argument) : [];
    directives();
    return { kind: "field", name: own.text, args, selections: isMark("{") ? selections(depth + 1) : null, start: own.start, end: own.end };
  }

  function argument() {
    const own = name();
    mark(":");
    return { name: own.text, value: value(0), start: own.start, end: own.end };
  }

  function directives() {
    while (skip("@")) {
      name();
      if (skip("(")) until(")", argument);
    }
  }

  function value(depth) {
    const one = peek();
    if (depth > MAX_DEPTH) throw new Mistake("too many levels", one.start, one.end);
    const { start, end: stop } = one;
    if (skip("$")) {
      const own = name();
      return { kind: "variable", name: own.text, start, end: own.end };
    }
    if (skip("[")) return { kind: "list", values: until("]", () => value(depth + 1)), start, end: stop };
    if (skip("{")) return { kind: "object", fields: until("}", () => { const own = name(); mark(":"); return { name: own.text, value: value(depth + 1), start: own.start, end: own.end }; }), start, end: stop };
    if (one.kind === "string" || one.kind === "number" || one.kind === "name") {
      next();
      return { kind: one.kind, text: one.text, start, end: stop };
    }
    return fail("a value");
  }

  return document();
}

/* --- validation ---------------------------------------------------------------------------------- */

export const named = (type) => (type.ofType ? named(type.ofType) : type.name);
export const written = (type) => (type.kind === "NON_NULL" ? written(type.ofType) + "!" : type.kind === "LIST" ? `[${written(type.ofType)}]` : type.name);
const LEAVES = ["SCALAR", "ENUM"], MAX_MISTAKES = 20;

/** Return the errors of a document in text order. `schema` is {types: Map, roots: {query, mutation}} or null. */
export function mistakes(text, schema) {
  if (!text.trim()) return [];
  let definitions;
  try {
    definitions = parse(text);
  } catch (error) {
    if (error instanceof Mistake) return [error];
    throw error;
  }
  if (!schema) return [];
  const found = [], note = (message, { start, end }) => { if (found.length < MAX_MISTAKES) found.push(new Mistake(message, start, end)); };
  const fragments = new Map(definitions.filter((one) => one.kind === "fragment").map((one) => [one.name, one])), spread = new Set();

  function check(list, typeName, scope) {
    const type = schema.types.get(typeName);
    for (const one of list) {
      if (one.kind === "spread") {
        spread.add(one.name);
        if (!fragments.has(one.name)) note(`unknown fragment ${one.name}`, one);
      } else if (one.kind === "inline") {
        if (one.type && !schema.types.has(one.type.text)) note(`unknown type ${one.type.text}`, one.type);
        else check(one.selections, one.type ? one.type.text : typeName, scope);
      } else if (type) checkField(one, type, scope);
    }
  }

  function checkField(one, type, scope) {
    if (one.name === "__typename" || (one.name.startsWith("__") && type.name === schema.roots.query)) return;
    const field = (type.fields || []).find((known) => known.name === one.name);
    if (!field) return note(`${type.name} has no field ${one.name}${suggestion(one.name, (type.fields || []).map((known) => known.name))}`, one);
    checkArguments(one, field.args || [], `field ${field.name}`, scope);
    const inner = schema.types.get(named(field.type)), isLeaf = !inner || LEAVES.includes(inner.kind);
    if (isLeaf && one.selections) note(`${one.name} has no fields: it is a ${written(field.type)}`, one);
    else if (!isLeaf && !one.selections) note(`${one.name} needs its fields in braces: it is a ${written(field.type)}`, one);
    else if (one.selections) check(one.selections, inner.name, scope);
  }

  function checkArguments(one, known, of, scope) {
    for (const given of one.args) {
      const argument = known.find((other) => other.name === given.name);
      if (!argument) note(`${of} takes no ${given.name}${suggestion(given.name, known.map((other) => other.name))}`, given);
      else checkValue(given.value, argument.type, scope);
    }
    for (const argument of known) if (argument.type.kind === "NON_NULL" && !argument.defaultValue && !one.args.some((given) => given.name === argument.name)) note(`${of} needs ${argument.name}: ${written(argument.type)}`, one);
  }

  function checkValue(value, type, scope) {
    if (value.kind === "variable") {
      scope?.used.add(value.name);
      if (scope && !scope.variables.has(value.name)) note(`the variable $${value.name} is not declared`, value);
      return;
    }
    const bare = type.kind === "NON_NULL" ? type.ofType : type;
    if (value.kind === "name" && value.text === "null") return void (type.kind === "NON_NULL" && note(`null is not a ${written(type)}`, value));
    if (value.kind === "list") return void (bare.kind === "LIST" ? value.values.forEach((one) => checkValue(one, bare.ofType, scope)) : note(`a list is not a ${written(bare)}`, value));
    if (bare.kind === "LIST") return checkValue(value, bare.ofType, scope);
    const inner = schema.types.get(named(bare));
    if (inner?.kind === "INPUT_OBJECT") {
      if (value.kind !== "object") return note(`${written(bare)} is written in braces`, value);
      for (const part of value.fields) {
        const known = inner.inputFields.find((one) => one.name === part.name);
        known ? checkValue(part.value, known.type, scope) : note(`${inner.name} has no field ${part.name}${suggestion(part.name, inner.inputFields.map((one) => one.name))}`, part);
      }
      for (const known of inner.inputFields) if (known.type.kind === "NON_NULL" && !value.fields.some((part) => part.name === known.name)) note(`${inner.name} needs ${known.name}`, value);
    } else if (value.kind === "object") note(`an object is not a ${written(bare)}`, value);
    else if (inner?.kind === "ENUM" && !inner.enumValues.some((one) => one.name === value.text)) note(`${value.text} is not one of ${inner.enumValues.map((one) => one.name).join(", ")}`, value);
    else if (bare.name === "Boolean" && !["true", "false"].includes(value.text)) note(`${value.text} is neither true nor false`, value);
    else if (bare.name === "Int" && value.kind !== "number") note(`${value.text} is no Int`, value);
  }

  for (const one of definitions) {
    if (one.kind === "fragment") {
      schema.types.has(one.type.text) ? check(one.selections, one.type.text, null) : note(`unknown type ${one.type.text}`, one.type);
      continue;
    }
    const root = schema.roots[one.kind], scope = { variables: new Map(one.variables.map((own) => [own.name, own])), used: new Set() };
    if (!root) note(`this node has no ${one.kind}`, one);
    for (const own of one.variables) if (!schema.types.has(innermost(own.type))) note(`unknown type ${innermost(own.type)}`, own.type);
    check(one.selections, root, scope);
    if (!spread.size) for (const own of one.variables) if (!scope.used.has(own.name)) note(`the variable $${own.name} is never used`, own);
  }
  for (const one of fragments.values()) if (!spread.has(one.name)) note(`the fragment ${one.name} is never used`, one);
  return found.sort((a, b) => a.start - b.start);
}

const innermost = (type) => (type.list ? innermost(type.list) : type.name.text);

function suggestion(word, known) {
  const near = known.map((one) => [distance(word.toLowerCase(), one.toLowerCase()), one]).filter(([far]) => far <= Math.max(1, word.length / 3)).sort(([a], [b]) => a - b)[0];
  return near ? `; is it ${near[1]}?` : "";
}

/** Return the edit distance of two names. */
export function distance(one, other) {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let line = 1; line <= one.length; line++) {
    const next = [line];
    for (let at = 1; at <= other.length; at++) next[at] = Math.min(row[at] + 1, next[at - 1] + 1, row[at - 1] + (one[line - 1] === other[at - 1] ? 0 : 1));
    row = next;
  }
  return row[other.length];
}

/* --- completion -------------------------------------------------------------------------------- */

/** Return completions at `offset`: {from, words: [{text, note}]}. Works on incomplete documents. */
export function completions(text, offset, schema) {
  const before = text.slice(0, offset), word = /\$?[_A-Za-z]?\w*$/.exec(before)[0], from = offset - word.length;
  const place = placeAt(tokens(before.slice(0, from)), schema);
  const words = place.words.filter((one) => one.text.startsWith(word) && one.text !== word);
  return { from, words: word ? words : [] };
}

function placeAt(list, schema) {
  const { types, roots } = schema, variables = list.flatMap((one, at) => (one.text === "$" && list[at + 1]?.kind === "name" ? [`$${list[at + 1].text}`] : []));
  const stack = [{ kind: "document", type: roots.query }];
  const top = () => stack.at(-1);
  list.forEach((one, at) => {
    const here = top(), previous = list[at - 1]?.text;
    if (one.kind === "mark") {
      if (one.text === "{") {
        if (here.kind === "arguments" || here.kind === "object") stack.push({ kind: "object", fields: types.get(here.value)?.inputFields || [] });
        else stack.push({ kind: "fields", type: here.kind === "document" ? here.type : here.inner });
      } else if (one.text === "(") stack.push(here.kind === "document" ? { kind: "variables" } : { kind: "arguments", fields: here.field?.args || [] });
      else if ((one.text === "}" || one.text === ")") && stack.length > 1) stack.pop();
    } else if (one.kind === "name") {
      if (here.kind === "document") {
        if (roots[one.text]) here.type = roots[one.text];
        else if (previous === "on") here.type = one.text;
      } else if (here.kind === "fields") {
        if (previous === "on" && list[at - 2]?.text === "...") here.inner = one.text;
        else {
          here.field = (types.get(here.type)?.fields || []).find((known) => known.name === one.text) || null;
          if (here.field) here.inner = named(here.field.type);
        }
      } else if (here.fields && previous !== ":") {
        const known = here.fields.find((field) => field.name === one.text);
        if (known) here.value = named(known.type);
      }
    }
  });
  const here = top(), last = list.at(-1)?.text, asWords = (fields) => (fields || []).map((field) => ({ text: field.name, note: field.type ? written(field.type) : "" }));
  if (here.kind === "document") return { words: last === "on" ? typeNames(types, (type) => type.fields) : Object.keys(roots).filter((name) => roots[name]).concat("fragment").map((name) => ({ text: name, note: "" })) };
  if (here.kind === "variables") return { words: last === ":" || last === "[" ? typeNames(types, (type) => !type.fields) : [] };
  if (here.kind === "fields") return { words: last === "on" ? typeNames(types, (type) => type.fields) : [...asWords(types.get(here.type)?.fields), { text: "__typename", note: "String!" }] };
  if (last === ":" || last === "[") {
    const type = types.get(here.value), values = type?.enumValues?.map((one) => one.name) || (here.value === "Boolean" ? ["true", "false"] : []);
    return { words: [...values, ...new Set(variables)].map((name) => ({ text: name, note: "" })) };
  }
  return { words: asWords(here.fields) };
}

const typeNames = (types, fits) => [...types.values()].filter(fits).map((type) => ({ text: type.name, note: type.kind.toLowerCase() }));
