/* Shows decoded values and JSON as elements. */

import { h } from "./dom.js";
import { addressLink, count, printable } from "./format.js";

/** Show the arguments of a call or a log: name, type and value. */
export function argumentList(entry, values) {
  if (!values.length) return h("p.soft", "no arguments");
  const inputs = entry.inputs || [];
  return h("dl.arguments", values.map((value, at) => h("div", h("dt", inputs[at]?.name || `#${at}`, h("small", inputs[at]?.type || "")), h("dd", valueOf(value)))));
}

export function valueOf(value) {
  if (Array.isArray(value)) {
    const shown = value.slice(0, 100).map((one, at) => h("li", value.names?.[at] ? h("span.soft", value.names[at] + ": ") : null, valueOf(one)));
    return value.length ? h("ol.values", shown, value.length > 100 ? h("li", `and ${count(value.length - 100)} more`) : null) : h("span.soft", "empty");
  }
  if (typeof value === "bigint") return h("code", value > 9999n || value < -9999n ? { title: count(value) } : null, value.toString());
  if (typeof value === "boolean") return h("code", String(value));
  if (/^0x[0-9a-f]{40}$/.test(value)) return addressLink(value, true);
  if (/^0x([0-9a-f]{2})*$/.test(value)) {
    const text = value.length > 2 ? printable(value) : null;
    return h("span", h("code.long", value.length > 2050 ? `${value.slice(0, 2050)}… (${(value.length - 2) / 2} bytes)` : value), text && text.length > 3 ? h("span.soft", ` “${text.slice(0, 200)}”`) : null);
  }
  return h("span.text", value);
}

/** Show description text; names between backticks become code. */
export const prose = (text) => (text || "").split("`").map((part, at) => (at % 2 ? h("code", part) : part));

const LONGEST = 200_000, MAX_PARTS = 4000;

/** Show highlighted JSON. Long texts are shown plain and truncated. */
export function json(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "undefined";
  const shown = text.length > LONGEST ? text.slice(0, LONGEST) + `\n… ${count(text.length - LONGEST)} letters more` : text;
  const parts = [];
  let last = 0;
  for (const match of shown.matchAll(/("(?:[^"\\]|\\.)*")(\s*:)?|-?\d[\d.eE+-]*|\b(?:true|false|null)\b/g)) {
    if (parts.length > MAX_PARTS) break;
    parts.push(shown.slice(last, match.index), h(match[2] ? "span.key" : match[1] ? "span.string" : "span.number", match[1] || match[0]));
    last = match.index + (match[1] || match[0]).length;
  }
  return [...parts, shown.slice(last)];
}
