/* Transaction view: input, status, logs, call tree and state changes. */

import { card, copyable, facts, h, put, table } from "../lib/dom.js";
import { addressLink, ago, blockLink, count, date, ether, printable, slotName, toNumber, trimmed } from "../lib/format.js";
import { decodeEvent, decodeInput, decodeOutput, revertReason } from "../lib/abi_store.js";
import { headers } from "../lib/headers.js";
import { attempt, call, RpcError } from "../lib/rpc.js";
import { argumentList, json, valueOf } from "../lib/values.js";
import { live, onChange } from "../lib/live.js";
import { statusPill } from "./block.js";
import { namedTree, sourceCard } from "./debugger.js";

const MAX_LOGS = 100, MAX_CALLS = 500, MAX_CHANGES = 200;

export async function show(root, [hash = ""]) {
  if (!/^0x[0-9a-f]{64}$/i.test(hash)) {
    put(root, h("h1", "Not a transaction hash"), card("Transactions", h("p", "The hash of a transaction is 0x and 64 hexadecimal digits.")));
    return null;
  }
  let end = null;
  const draw = async () => {
    const [one, receipt] = await Promise.all([call("eth_getTransactionByHash", [hash]), call("eth_getTransactionReceipt", [hash])]);
    if (!one) {
      put(root, h("h1", "Transaction not found"), card("Not in a block and not in the pool", h("p.long", h("code", hash)), h("p.soft", "It may have been replaced, or belong to another network.")));
      return false;
    }
    await write(root, one, receipt);
    return receipt !== null;
  };
  if (!(await draw()) && live.head) {
    let isBusy = false, asked = live.head.number;
    end = onChange(async () => {
      if (isBusy || live.head?.number === asked) return;
      isBusy = true;
      asked = live.head.number;
      if (await draw().catch(() => false)) end?.();
      isBusy = false;
    });
  }
  return () => end?.();
}

async function write(root, one, receipt) {
  const input = one.input || "0x", tree = h("div", h("p.soft", "…")), changes = h("div", h("p.soft", "…")), why = h("div"), source = h("div");
  put(root,
    h("div.title", h("h1", "Transaction"), h("span.hash", copyable(one.hash)), statusPill(receipt)),
    why,
    h("div.columns", card("Summary", summary(one, receipt)), card(one.to ? "Input" : "Code of the new contract", inputOf(input, one.to))),
    receipt ? card(`${count(receipt.logs.length)} ${receipt.logs.length === 1 ? "log" : "logs"}`, logs(receipt.logs)) : null,
    receipt ? h("div.columns", card("Calls", tree), card("State changes", changes)) : null,
    source,
    h("details.card", h("summary", "As JSON"), h("pre.box", { tabindex: "0" }, json({ transaction: one, receipt }))));
  if (!receipt) {
    const reply = await attempt("txpool_explain", [one.hash]);
    if (reply) put(why, card("Why it is pending", h("p", typeof reply === "string" ? reply : reply.explanation || reply.reason || JSON.stringify(reply))));
    return;
  }
  if (receipt.status && !toNumber(receipt.status)) put(why, h("section.card.problem", h("h2", "Reverted"), h("p.long", revertReason(receipt.revertReason, one.to) || "No revert reason is stored; see the calls below.")));
  calls(tree, source, one.hash, (trace) => callTree(trace, why, !receipt.revertReason));
  traced(changes, one.hash, { tracer: "prestateTracer", tracerConfig: { diffMode: true } }, stateChanges);
}

function summary(one, receipt) {
  const price = receipt?.effectiveGasPrice || one.gasPrice || "0x0", used = receipt ? BigInt(receipt.gasUsed) : null;
  return facts([
    ["Block", one.blockNumber ? blockLink(toNumber(one.blockNumber)) : "in the pool", one.transactionIndex ? h("span.soft", ` position ${toNumber(one.transactionIndex)}`) : null, one.blockNumber ? timeOf(one) : null],
    ["From", addressLink(one.from, true)],
    one.to ? ["To", addressLink(one.to, true)] : ["Creates", receipt?.contractAddress ? addressLink(receipt.contractAddress, true) : "a contract"],
    ["Value", ether(one.value)],
    used !== null ? ["Gas used", `${count(used)} of ${count(one.gas)}`] : ["Gas limit", count(one.gas)],
    ["Gas price", ether(price), one.maxFeePerGas ? h("span.soft", ` at most ${ether(one.maxFeePerGas)}`) : null],
    used !== null ? ["Fee", ether(used * BigInt(price))] : null,
    ["Nonce", count(one.nonce)],
    ["Type", String(toNumber(one.type || "0x0"))],
    one.accessList?.length ? ["Access list", one.accessList.map((entry) => h("div", addressLink(entry.address, true), h("span.soft", ` ${entry.storageKeys.length} slots`)))] : null,
  ]);
}

function timeOf(one) {
  const place = h("span.soft");
  const number = toNumber(one.blockNumber);
  headers(number, number).then(([block]) => { place.textContent = ` · ${date(block.timestamp)}, ${ago(block.timestamp)}`; }, () => {});
  return place;
}

function inputOf(input, to) {
  if (input === "0x") return h("p.soft", "none: a plain transfer");
  const decoded = to ? decodeInput(input, to) : null, text = printable(input);
  return h("div",
    decoded ? [h("p.signature", decoded.signature), argumentList(decoded.entry, decoded.values)] : null,
    !decoded && to ? h("p.soft", "No known ABI has this function. Drop the contract's JSON file here.") : null,
    !decoded && text && text.length > 3 ? h("p", `“${text.slice(0, 500)}”`) : null,
    h("details", decoded ? null : { open: input.length < 1000 }, h("summary", `${count((input.length - 2) / 2)} bytes`), h("pre.box", { tabindex: "0" }, input.length > 100_000 ? input.slice(0, 100_000) + "…" : input)));
}

function logs(list) {
  if (!list.length) return h("p.soft", "No logs.");
  const shown = list.slice(0, MAX_LOGS).map((log) => {
    const decoded = decodeEvent(log);
    return h("article.log", h("header", h("span.soft", `#${toNumber(log.logIndex)}`), h("span.signature", decoded ? decoded.signature : "unknown event"), addressLink(log.address)),
      decoded ? argumentList(decoded.entry, decoded.values) : [facts([...log.topics.map((topic, at) => [`Topic ${at}`, valueOf(topic)]), ["Data", valueOf(log.data)]])]);
  });
  return h("div", shown, list.length > MAX_LOGS ? h("p.soft", `and ${count(list.length - MAX_LOGS)} more`) : null);
}

/* --- traces ------------------------------------------------------------------------------------ */

async function traced(place, hash, options, draw) {
  try {
    put(place, draw(await call("debug_traceTransaction", [hash, options])));
  } catch (error) {
    put(place, h("p.soft", error instanceof RpcError && error.isAbsent ? "Needs the group DEBUG (--rpc-http-api)." : `Not traced: ${error.message}`));
  }
}

/** Show the tree of a node that knows the contracts; otherwise decode calls with the ABIs of this browser. */
async function calls(place, source, hash, draw) {
  const named = await attempt("debug_callTree", [hash]).catch(() => null);
  if (!named?.isKnown) return traced(place, hash, { tracer: "callTracer" }, draw);
  put(place, namedTree(named));
  put(source, sourceCard(hash));
}

function callTree(trace, why, tellsReason) {
  if (tellsReason && trace.error) put(why, h("section.card.problem", h("h2", "Reverted"), h("p.long", revertReason(trace.output, trace.to) || trace.revertReason || trace.error)));
  const budget = { left: MAX_CALLS };
  return h("ul.calls", callItem(trace, budget), budget.left <= 0 ? h("li.soft", "… and more") : null);
}

function callItem(one, budget) {
  if (--budget.left < 0) return null;
  const decoded = decodeInput(one.input, one.to), out = decoded ? decodeOutput(decoded.entry, one.output) : null;
  const name = decoded ? `${decoded.entry.name}(${decoded.values.length ? "…" : ""})` : one.type.startsWith("CREATE") ? "new contract" : one.input && one.input !== "0x" ? one.input.slice(0, 10) : "transfer";
  const line = [h("span.kind", one.type), one.to ? addressLink(one.to) : null, " ", h("span.signature", name),
    one.value && BigInt(one.value) ? h("span", ` · ${ether(one.value)}`) : null, one.error ? h("span.bad", ` ${revertReason(one.output, one.to) || one.error}`) : null, h("span.gas", `${count(toNumber(one.gasUsed))} gas`)];
  const details = decoded && (decoded.values.length || out) ? h("div", argumentList(decoded.entry, decoded.values), out ? h("p", h("span.soft", "returns "), out.values.map(valueOf)) : null) : null;
  if (!one.calls?.length && !details) return h("li.leaf", line);
  return h("li", h("details", { open: !!one.calls?.length }, h("summary", line), details, one.calls?.length ? h("ul", one.calls.map((inner) => callItem(inner, budget))) : null));
}

function stateChanges({ pre, post }) {
  const rows = [];
  for (const address of new Set([...Object.keys(pre), ...Object.keys(post)])) {
    const before = pre[address] || {}, after = post[address] || {};
    const isGone = !(address in post) && address in pre;
    const row = (what, from, to) => rows.push([addressLink(address), what, [h("div", h("div.before", from), h("div.after", to)), "wide"]]);
    if (isGone && before.code) row("removed", ether(before.balance || "0x0"), "");
    else {
      if (after.balance !== undefined) row("balance", ether(before.balance || "0x0"), `${ether(after.balance)} (${difference(before.balance, after.balance)})`);
      if (after.nonce !== undefined) row("nonce", String(before.nonce ?? 0), String(after.nonce));
      if (after.code !== undefined) row("code", "", `${count((after.code.length - 2) / 2)} bytes`);
      for (const slot of new Set([...Object.keys(before.storage || {}), ...Object.keys(after.storage || {})]))
        row(h("code", { title: slot }, `slot ${slotName(slot)}`), h("code", trimmed(before.storage?.[slot])), h("code", trimmed(after.storage?.[slot])));
    }
  }
  return h("div.changes", table("State changes", ["Account", "What", "Before and after"], rows.slice(0, MAX_CHANGES), "No state changes."), rows.length > MAX_CHANGES ? h("p.soft", `and ${count(rows.length - MAX_CHANGES)} more`) : null);
}

const difference = (before, after) => {
  const change = BigInt(after) - BigInt(before || "0x0");
  return change < 0n ? `−${ether(-change)}` : `+${ether(change)}`;
};
