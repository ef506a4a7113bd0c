/*
 * Makes a form field from a JSON schema: {element, read(), write(value)}. `read` returns undefined for an empty field.
 */

import { h, put, say } from "./dom.js";
import { prose } from "./values.js";
import { count } from "./format.js";

export class Mistake extends Error {}

let made = 0;

export function field(name, schema, description, isRequired) {
  const options = schema.anyOf || [schema], kinds = new Set(options.map(kindOf));
  if (kinds.size === 1 && kinds.has("object") && Object.keys(schema.properties || {}).length) return group(name, schema, description, isRequired);
  if (kinds.size === 1 && kinds.has("boolean")) return choice(name, [true, false], description, isRequired);
  if (kinds.size === 1 && kinds.has("enum") && !options[0].enum.includes("")) return choice(name, options[0].enum, description, isRequired);
  return line(name, options, kinds, description, isRequired);
}

function kindOf(schema) {
  return schema.enum ? "enum" : schema.type === "number" ? "integer" : schema.type || "any";
}

function caption(name, description, isRequired) {
  return h("span", h("code", name), isRequired ? null : h("small", " · optional"), description ? h("small", " · ", prose(description)) : null);
}

function labelled(name, control, description, isRequired) {
  const mistake = h("span.mistake", { role: "alert", hidden: true });
  const title = caption(name, description, isRequired);
  return { element: h("div", h("label", title, control), mistake), mistake };
}

/** Run `read`; show an error at its field. */
function guarded(mistake, read) {
  mistake.hidden = true;
  try {
    return read();
  } catch (error) {
    mistake.hidden = false;
    say(mistake, error.message);
    throw error;
  }
}

function choice(name, values, description, isRequired) {
  const control = h("select", isRequired ? null : h("option", { value: "" }, ""), values.map((value) => h("option", { value: JSON.stringify(value) }, String(value))));
  return {
    element: labelled(name, control, description, isRequired).element,
    read: () => (control.value === "" ? undefined : JSON.parse(control.value)),
    write: (value) => { control.value = value === undefined ? "" : JSON.stringify(value); },
  };
}

function line(name, options, kinds, description, isRequired) {
  const isLong = kinds.has("array") || kinds.has("any") || [...kinds].every((kind) => kind === "object");
  const listed = options.find((one) => one.enum)?.enum.filter(Boolean) || [], id = `values-${++made}`;
  const control = isLong ? h("textarea", { rows: "2", spellcheck: "false" }) : h("input", { spellcheck: "false", autocomplete: "off", list: listed.length ? id : null });
  const { element, mistake } = labelled(name, control, description, isRequired);
  if (listed.length) element.append(h("datalist", { id }, listed.map((value) => h("option", { value }))));
  const read = () => guarded(mistake, () => {
    const text = control.value.trim();
    if (text === "") {
      if (isRequired && !kinds.has("string")) throw new Mistake(`${name} is needed`);
      return isRequired ? "" : undefined;
    }
    return valueOf(name, text, options, kinds);
  });
  return { element, read, write: (value) => { control.value = value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value); } };
}

function valueOf(name, text, options, kinds) {
  if (kinds.has("integer") && /^-?\d+(\.\d+)?$/.test(text)) return Number(text);
  if (/^[[{]/.test(text) || !(kinds.has("string") || kinds.has("enum") || kinds.has("any"))) {
    if (kinds.has("array") && !/^[[{"]/.test(text)) return text.split(/[\s,]+/);
    try {
      return JSON.parse(text);
    } catch (error) {
      throw new Mistake(`${name} is no JSON: ${error.message}`);
    }
  }
  if (kinds.has("any")) {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }
  const patterns = options.map((one) => one.pattern).filter(Boolean), listed = options.flatMap((one) => one.enum || []);
  if (listed.includes(text) || !patterns.length) return text;
  if (patterns.some((pattern) => new RegExp(pattern).test(text.toLowerCase()))) return text;
  if (/^\d+$/.test(text) && patterns.some((pattern) => pattern.includes("(0|[1-9a-f]"))) return "0x" + BigInt(text).toString(16);
  throw new Mistake(`${name}: expected ${hint(patterns)}, got ${count(text.length)} other characters`);
}

function hint(patterns) {
  const bytes = /\{(\d+)\}/.exec(patterns[0]);
  return bytes ? `0x and ${bytes[1]} hexadecimal digits` : patterns[0].includes("(0|") ? "a number (0x… or decimal)" : "0x and hexadecimal digits";
}

function group(name, schema, description, isRequired) {
  const parts = Object.entries(schema.properties).map(([key, inner]) => [key, field(key, inner, inner.description, (schema.required || []).includes(key) && isRequired)]);
  const element = h("fieldset", h("legend", caption(name, description, isRequired)));
  const first = isRequired ? 4 : 0, shown = parts.slice(0, first), rest = parts.slice(first);
  put(element, element.firstChild, shown.map(([, part]) => part.element), rest.length ? h("details", h("summary", isRequired ? `${rest.length} more` : `${rest.length} members`), h("div.params", rest.map(([, part]) => part.element))) : null);
  return {
    element,
    read() {
      const value = Object.fromEntries(parts.map(([key, part]) => [key, part.read()]).filter(([, one]) => one !== undefined && one !== ""));
      return Object.keys(value).length || isRequired ? value : undefined;
    },
    write(value) {
      for (const [key, part] of parts) part.write(value?.[key]);
    },
  };
}

/** Return the parameters of a call. Trailing empty parameters are omitted; other empty parameters become null. */
export function positional(fields) {
  const values = fields.map((one) => one.read());
  while (values.length && values.at(-1) === undefined) values.pop();
  return values.map((value) => (value === undefined ? null : value));
}
