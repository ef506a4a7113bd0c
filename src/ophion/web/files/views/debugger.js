/*
 * Call tree and source of a transaction on a development node that knows the artifacts of its contracts.
 *
 * The values of a step (stack, memory, storage) are fetched when the step is shown.
 */

import { facts, h, put, table } from "../lib/dom.js";
import { addressLink, count, ether, slotName, trimmed } from "../lib/format.js";
import { call, RpcError } from "../lib/rpc.js";

const MAX_CALLS = 500, MAX_WORDS = 256, LINES_AROUND = 9;

/* --- call tree --------------------------------------------------------------------------------- */

export function namedTree(tree) {
  const budget = { left: MAX_CALLS };
  return h("ul.calls", callItem(tree, budget), budget.left < 0 ? h("li.soft", "… and more") : null);
}

function callItem(one, budget) {
  if (--budget.left < 0) return null;
  if (one.console !== null) return h("li.leaf", h("span.kind", "LOG"), " ", h("span.text", one.console));
  const line = [h("span.kind", one.kind), one.to ? addressLink(one.to) : null, " ", h("span.signature", one.name),
    BigInt(one.value) ? h("span", ` · ${ether(one.value)}`) : null, one.reason !== null ? h("span.bad", ` ${one.reason}`) : null,
    h("span.gas", `${count(one.gasUsed)} gas`)];
  const details = [
    one.source ? h("p.place", h("span.soft", `${one.source.path}:${one.source.line} `), h("code", one.source.text)) : null,
    one.arguments.length ? facts(one.arguments.map(([name, value]) => [name, h("code.long", value)])) : null,
    one.result !== null ? h("p", h("span.soft", "returns "), h("code.long", one.result)) : null,
  ].filter(Boolean);
  const below = [...one.calls.map((inner) => callItem(inner, budget)), ...one.events.map((text) => h("li.leaf", h("span.kind", "EVENT"), " ", h("span.signature", text)))];
  if (!below.length && !details.length) return h("li.leaf", line);
  return h("li", h("details", { open: true }, h("summary", line), details, below.length ? h("ul", below) : null));
}

/* --- source ------------------------------------------------------------------------------------ */

/** Make a card that loads the source steps of a transaction when it is opened. */
export function sourceCard(hash) {
  const place = h("div", h("p.soft", "…"));
  let isLoaded = false;
  return h("details.card.source", { ontoggle: async () => {
    if (isLoaded) return;
    isLoaded = true;
    try {
      const found = await call("debug_sourceSteps", [hash]);
      found?.steps.length ? new Stepper(place, hash, found) : put(place, h("p.soft", "No source line is known. Start the node with --artifacts, and compile with source maps."));
    } catch (error) {
      put(place, h("p.soft", `Not traced: ${error.message}`));
      if (!(error instanceof RpcError)) isLoaded = false;
    }
  } }, h("summary", "Step through the source"), place);
}

class Stepper {
  constructor(place, hash, { files, steps, isTruncated }) {
    this.hash = hash;
    this.steps = steps;
    this.lines = files.map((file) => file.text.split("\n"));
    this.paths = files.map((file) => file.path);
    this.at = 0;
    this.where = h("p.where", { role: "status" });
    this.code = h("ol.code", { tabindex: "0", "aria-label": "Source" });
    this.values = h("div.columns");
    this.slider = h("input", { type: "range", min: "0", max: String(steps.length - 1), value: "0", "aria-label": "Step", oninput: () => this.show(Number(this.slider.value)) });
    const button = (text, title, next) => h("button", { type: "button", title, onclick: () => this.show(next()) }, text);
    put(place,
      h("div.steps",
        button("First", "First step", () => 0), button("Back", "Previous line", () => this.at - 1),
        button("Next", "Next line", () => this.at + 1), button("Over", "Next line without entering calls", () => this.find(this.steps[this.at].depth)),
        button("Out", "Return to the caller", () => this.find(this.steps[this.at].depth - 1)), button("Last", "Last step", () => steps.length - 1)),
      this.slider, this.where, this.code, this.values,
      isTruncated ? h("p.soft", `The first ${count(steps.length)} steps are shown.`) : null);
    this.show(0);
  }

  /** Return the next step at this call depth or in an outer call. */
  find(depth) {
    const found = this.steps.findIndex((step, at) => at > this.at && step.depth <= depth);
    return found < 0 ? this.steps.length - 1 : found;
  }

  async show(wanted) {
    this.at = Math.min(Math.max(wanted, 0), this.steps.length - 1);
    this.slider.value = String(this.at);
    const step = this.steps[this.at], lines = this.lines[step.file];
    put(this.where, `Step ${count(this.at + 1)} of ${count(this.steps.length)} · `, h("strong", step.contract), ` · ${this.paths[step.file]}:${step.line}`,
      h("span.soft", ` · depth ${step.depth} · ${count(step.gas)} gas left`));
    const from = Math.max(step.line - LINES_AROUND, 1), to = Math.min(step.line + LINES_AROUND, lines.length);
    this.code.setAttribute("start", String(from));
    put(this.code, lines.slice(from - 1, to).map((text, at) => h("li", from + at === step.line ? { class: "current", "aria-current": "step", value: String(from + at) } : { value: String(from + at) }, h("code", text || " "))));
    const asked = this.at;
    try {
      const values = await call("debug_stepValues", [this.hash, step.position]);
      if (asked === this.at && values) this.draw(values);
    } catch (error) {
      if (asked === this.at) put(this.values, h("p.soft", `No values: ${error.message}`));
    }
  }

  draw({ op, stack = [], memory = [], storage = {} }) {
    const rows = (list) => list.slice(0, MAX_WORDS).map(([name, value]) => [h("code", name), [h("code", value), "wide"]]);
    put(this.values,
      h("section", h("h3", `Stack before ${op}`), table("Stack", ["Place", "Value"], rows(stack.toReversed().map((value, at) => [String(at), value])), "The stack is empty.")),
      h("section", h("h3", "Memory"), table("Memory", ["Offset", "Value"], rows(memory.map((word, at) => ["0x" + (at * 32).toString(16), word])), "The memory is empty.")),
      h("section", h("h3", "Storage"), table("Storage", ["Slot", "Value"], rows(Object.entries(storage).map(([slot, value]) => [slotName(slot), trimmed(value)])), "No slot was accessed yet.")));
  }
}
