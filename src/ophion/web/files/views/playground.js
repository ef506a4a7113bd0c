/* Playground: a form for every method in `rpc.discover`, its answer, and the call in other languages. */

import { card, h, put, say } from "../lib/dom.js";
import { field, Mistake, positional } from "../lib/forms.js";
import { curl, ethers, web3py } from "../lib/snippets.js";
import { call, post, token } from "../lib/rpc.js";
import { json, prose } from "../lib/values.js";
import { bytes } from "../lib/format.js";

let described = null;
const LANGUAGES = [["curl", curl], ["web3.py", web3py], ["ethers", ethers]];

export function switcher(current) {
  const one = (name, href, title) => h("a", { href, "aria-current": current === name ? "page" : null }, title);
  return h("nav.row.switch", { "aria-label": "Languages of the playground" }, one("rpc", "#/playground", "JSON-RPC"), one("graphql", "#/graphql", "GraphQL"), one("query", "#/query", "SQL"));
}

export async function show(root, [wanted]) {
  described ||= (await call("rpc.discover")).methods;
  const chosen = described.find((one) => one.name === wanted) || described.find((one) => one.name === "eth_getBlockByNumber") || described[0];
  const list = h("ul"), filter = h("input", { type: "search", placeholder: `${described.length} methods`, "aria-label": "Find a method", oninput: () => fill() });
  const fill = () => {
    const text = filter.value.trim().toLowerCase(), found = described.filter((one) => one.name.toLowerCase().includes(text) || (text.length > 2 && one.summary?.toLowerCase().includes(text)));
    let group = "";
    put(list, found.flatMap((one) => {
      const mine = one.tags?.[0]?.name || "", item = h("li", h("a", { href: `#/playground/${one.name}`, title: one.summary, "aria-current": one === chosen ? "page" : null }, one.name));
      const items = mine === group ? [item] : [h("li.group", mine), item];
      group = mine;
      return items;
    }));
  };
  fill();
  put(root, h("div.title.spread", h("h1", "Playground"), switcher("rpc")), h("div.playground", h("aside.card.methods", { "aria-label": "Methods" }, filter, list), await method(chosen)));
  const current = list.querySelector("[aria-current]");
  if (current) list.scrollTop = Math.max(0, current.offsetTop - list.offsetTop - 120);
}

async function method(one) {
  const fields = one.params.map((param) => field(param.name, param.schema || {}, param.description, param.required));
  const answer = h("pre.box", { id: "answer", tabindex: "0", role: "region", "aria-label": "Answer" }, h("span.soft", "Run the call to see its answer.")), status = h("span.soft", { role: "status" }), snippet = h("pre.box", { tabindex: "0", role: "region", "aria-label": "The call in this language" });
  const example = one.examples?.[0];
  if (example) fields.forEach((part, at) => part.write(example.params[at]?.value));
  else if (one.params[0]?.name === "block") fields[0].write("latest");
  const url = new URL("jsonrpc", location.href.split("#")[0]).href;
  let language = LANGUAGES[0];
  const params = () => {
    try {
      return positional(fields);
    } catch (error) {
      if (error instanceof Mistake) return null;
      throw error;
    }
  };
  const write = () => {
    const values = params();
    if (values) say(snippet, language[1](url, one.name, values, !!token.value));
  };
  const run = async (event) => {
    event?.preventDefault();
    const values = params();
    if (!values) return;
    write();
    say(status, "…");
    const begun = performance.now();
    try {
      const reply = await post("jsonrpc", { jsonrpc: "2.0", id: 1, method: one.name, params: values });
      const text = JSON.stringify(reply.error ? { error: reply.error } : reply.result, null, 2) ?? "null";
      answer.classList.toggle("failed", !!reply.error);
      put(answer, json(text));
      say(status, `${(performance.now() - begun).toFixed(0)} ms · ${bytes(text.length)}${reply.error ? " · error" : ""}`);
    } catch (error) {
      put(answer, error.message);
      say(status, "no answer");
    }
  };
  const tabs = h("div.tabs", { role: "tablist", "aria-label": "Languages" }, LANGUAGES.map((entry) => h("button", { type: "button", role: "tab", "aria-selected": String(entry === language), onclick: (event) => {
    language = entry;
    for (const tab of event.currentTarget.parentNode.children) tab.setAttribute("aria-selected", String(tab === event.currentTarget));
    write();
  } }, entry[0])));
  const form = h("form.params", { onsubmit: run, oninput: write, onkeydown: (event) => { if ((event.ctrlKey || event.metaKey) && event.key === "Enter") run(event); } },
    fields.map((part) => part.element), h("div.row", h("button.main", { type: "submit" }, "Run"), h("span.soft", "Ctrl+Enter"), status));
  write();
  return h("div.method",
    h("section.card", h("header", h("h2.signature", one.name), one.deprecated ? h("span.pill.worry", "deprecated") : null), h("p", prose(one.summary)), (one.description || "").split(/\n\n+/).filter(Boolean).map((text) => h("p.soft", prose(text))),
      one["x-aliases"]?.length ? h("p.soft", `Also called ${one["x-aliases"].join(", ")}.`) : null, form),
    card("Answer", one.result?.description ? h("p.soft", one.result.description) : null, answer), card("The same call", tabs, snippet));
}
