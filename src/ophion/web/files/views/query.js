/* Query tab of the playground: SQL over the tables of the chain, on nodes that allow it. */

import { card, h, put, say, table } from "../lib/dom.js";
import { call, RpcError } from "../lib/rpc.js";
import { prose } from "../lib/values.js";
import { switcher } from "./playground.js";

const MAX_SHOWN = 500;
const EXAMPLES = [
  ["Top senders", "select to_hex(from_address) sender, count(*) transactions\nfrom transactions group by 1 order by 2 desc limit 10"],
  ["Gas by contract", "select to_hex(to_address) contract, sum(gas_used) gas\nfrom transactions where n_input_bytes > 0 group by 1 order by 2 desc limit 10"],
  ["Blocks by day", "select date_trunc('day', to_timestamp(timestamp)) as day, count(*) blocks, sum(n_transactions) transactions\nfrom blocks group by 1 order by 1 desc limit 30"],
  ["Token transfers", "select block_number, to_hex(erc20) token, to_hex(from_address) sender, to_hex(to_address) recipient, value_string amount\nfrom erc20_transfers order by block_number desc limit 50"],
];

export async function show(root) {
  const place = h("div");
  put(root, h("div.title.spread", h("h1", "Playground"), switcher("query")), place);
  let tables;
  try {
    tables = await call("sql_tables");
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    const hint = error.isAbsent ? "SQL is disabled on this node. Enable it with the API group SQL (--rpc-http-api), where the package ophion[data] is installed." : error.message;
    return void put(place, h("section.card", { role: "alert" }, h("p", hint)));
  }
  const text = h("textarea.query", { id: "query", rows: "7", spellcheck: "false", "aria-label": "SQL query", maxlength: "65536" });
  const status = h("span.soft", { role: "status" }), answer = h("div");
  text.value = sessionStorage.getItem("ophion-query") || EXAMPLES[0][1];
  const run = async (event) => {
    event?.preventDefault();
    sessionStorage.setItem("ophion-query", text.value);
    say(status, "…");
    try {
      const found = await call("sql_query", [text.value]);
      put(answer, result(found));
      say(status, `${found.rows.length} rows · ${found.elapsedMs} ms${found.truncated ? " · more rows were left out" : ""}`);
    } catch (error) {
      put(answer, h("p.failed", { role: "alert" }, error.message));
      say(status, "failed");
    }
  };
  const examples = EXAMPLES.map(([title, query]) => h("button.quiet", { type: "button", onclick: () => { text.value = query; run(); } }, title));
  const form = h("form.params", { onsubmit: run, onkeydown: (event) => { if ((event.ctrlKey || event.metaKey) && event.key === "Enter") run(event); } },
    text, h("div.row", h("button.main", { type: "submit" }, "Run"), h("span.soft", "Ctrl+Enter"), status), h("div.row", examples));
  put(place, card("SQL", form), card("Result", answer), card("Tables", tables.map(described)));
}

function result(found) {
  const cell = (value) => (value === null ? h("span.soft", "null") : String(value));
  const rows = found.rows.slice(0, MAX_SHOWN).map((row) => row.map(cell));
  const note = found.rows.length > MAX_SHOWN ? h("p.soft", `The first ${MAX_SHOWN} of ${found.rows.length} rows are shown.`) : null;
  return [table("Result", found.columns.map((column) => column.name), rows, "No rows."), note];
}

function described(one) {
  const rows = one.columns.map((column) => [h("code", column.name), column.type, prose(column.description)]);
  return h("details", h("summary", h("code", one.name), " ", one.description), table(one.name, ["Column", "Type", "Meaning"], rows));
}
