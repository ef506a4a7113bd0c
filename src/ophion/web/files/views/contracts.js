/* Contracts with an ABI stored in this browser. */

import { card, h, put, table } from "../lib/dom.js";
import { addressLink, count } from "../lib/format.js";
import { abis, forget, takeText } from "../lib/abi_store.js";

export function show(root) {
  const file = h("input", { type: "file", multiple: true, accept: ".json,.abi,application/json", "aria-label": "Files with ABIs", onchange: async () => {
    for (const one of file.files) takeText(await one.text(), one.name);
  } });
  put(root, h("h1", "Known contracts"),
    card("Add ABIs", h("div.drop", h("p", "Drop JSON files of contracts anywhere here: plain ABIs or compiler output."), h("p", file), h("p", "The ABIs are stored in this browser only."))),
    card("Stored ABIs", table("Contracts", ["Name", ["Functions", "right"], ["Events", "right"], "At", h("span.hidden", "Actions")], abis().map((one) => [
      h("b", one.name), [count(one.abi.filter((entry) => entry.type === "function").length), "right"], [count(one.abi.filter((entry) => entry.type === "event").length), "right"],
      one.addresses.length ? one.addresses.map((address) => h("div", addressLink(address, true))) : h("span.soft", "matched by selector"),
      h("button.quiet", { type: "button", "aria-label": `Forget ${one.name}`, onclick: () => { forget(one.name); show(root); } }, "Forget")]), "None yet.")));
}
