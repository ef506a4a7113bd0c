/* Account view: balance, nonce, code, storage, transactions, calls and logs. */

import { card, copyable, facts, h, put, say, table } from "../lib/dom.js";
import { blockLink, bytes, count, ether, names, printable, slotName, toHex, toNumber, trimmed, txLink, addressLink } from "../lib/format.js";
import { abiAt, abis, bind, decodeEvent, decodeOutput, revertReason } from "../lib/abi_store.js";
import { encode, selector, AbiError } from "../lib/abi_codec.js";
import { attempt, call, RpcError } from "../lib/rpc.js";
import { valueOf } from "../lib/values.js";
import { live, onChange } from "../lib/live.js";
import { transactionTable } from "./block.js";

const ROWS = 10, MOST = 20, SLOTS = 50, BACK = 1000, ZERO = "0x" + "0".repeat(64);

export async function show(root, [given = ""]) {
  const address = given.toLowerCase();
  if (!/^0x[0-9a-f]{40}$/.test(address)) {
    put(root, h("h1", "Not an address"), card("Addresses", h("p", "An address is 0x and 40 hexadecimal digits.")));
    return null;
  }
  const [balance, nonce, code] = await Promise.all([call("eth_getBalance", [address, "latest"]), call("eth_getTransactionCount", [address, "latest"]), call("eth_getCode", [address, "latest"])]);
  const isContract = code !== "0x", holds = h("span", ether(balance)), sent = h("span", count(toNumber(nonce)));
  put(root,
    h("div.title", h("h1", names.get(address) || (isContract ? "Contract" : "Account")), h("span.hash", copyable(address))),
    h("div.columns",
      card("Summary", facts([["Balance", holds], ["Nonce", sent], ["Code", isContract ? codeOf(code) : "none"], isContract ? ["ABI", abiChoice(address)] : null])),
      isContract ? card("Storage", storage(address)) : null),
    isContract && abiAt(address) ? card("Read", readers(address)) : null,
    card("Sent transactions", sentBy(address, toNumber(nonce))),
    card(`Calls in the last ${count(BACK)} blocks`, calledBy(address)),
    isContract ? card(`Logs of the last ${count(BACK)} blocks`, await logsOf(address)) : null);
  let isBusy = false;
  return onChange(async () => {
    if (isBusy) return;
    isBusy = true;
    try {
      const [now, next] = await Promise.all([call("eth_getBalance", [address, "latest"]), call("eth_getTransactionCount", [address, "latest"])]);
      say(holds, ether(now));
      say(sent, count(toNumber(next)));
    } catch { /* ignore the error: the next block repeats the request */ }
    setTimeout(() => { isBusy = false; }, 1500);
  });
}

function codeOf(code) {
  return h("details", h("summary", bytes((code.length - 2) / 2)), h("pre.box", { tabindex: "0" }, code));
}

function abiChoice(address) {
  const own = abiAt(address);
  const select = h("select", { "aria-label": "ABI of this contract", onchange: () => { bind(select.value, address); dispatchEvent(new HashChangeEvent("hashchange")); } },
    h("option", { value: "" }, "not known"), abis().map((one) => h("option", { value: one.name, selected: one === own }, one.name)));
  return h("div.row", select, h("span.soft", "or drop its JSON file here"));
}

/* --- storage ----------------------------------------------------------------------------------- */

function storage(address) {
  const place = h("div"), rows = [];
  let next = ZERO;
  const more = async () => {
    try {
      const range = await call("debug_storageRangeAt", ["latest", 0x7fffffff, address, next, SLOTS]).catch(async (error) => {
        if (!(error instanceof RpcError) || error.isAbsent) throw error;
        return call("debug_storageRangeAt", ["latest", 0, address, next, SLOTS]);
      });
      for (const [hash, { key, value }] of Object.entries(range.storage)) rows.push([h("code", { title: key || hash }, key ? slotName(key) : `hash ${hash.slice(0, 10)}…`), [slotValue(value), "wide"]]);
      next = range.nextKey;
      put(place, table("Storage", ["Slot", "Value"], rows, "No storage."), next ? h("div.pager", h("button", { type: "button", onclick: more }, "More slots")) : null);
    } catch (error) {
      put(place, h("p.soft", error.isAbsent ? "Needs the group DEBUG (--rpc-http-api)." : error.message));
    }
  };
  more();
  return place;
}

function slotValue(value) {
  const text = printable(value);
  return [h("code", trimmed(value)), text && text.length > 3 ? h("span.soft", ` “${text}”`) : null];
}

/* --- transactions ------------------------------------------------------------------------------ */

/** List transactions of the account by nonce, newest first. */
function sentBy(address, total) {
  const place = h("div"), list = [], receipts = [];
  let next = total - 1;
  const more = async () => {
    const nonces = Array.from({ length: Math.min(ROWS, next + 1) }, (_, at) => next - at);
    next -= nonces.length;
    const found = (await Promise.all(nonces.map((nonce) => attempt("eth_getTransactionBySenderAndNonce", [address, toHex(nonce)])))).filter(Boolean);
    list.push(...found);
    receipts.push(...(await Promise.all(found.map((one) => attempt("eth_getTransactionReceipt", [one.hash])))));
    put(place, transactionTable(list, receipts, "No transactions sent."), next >= 0 && found.length ? h("div.pager", h("button", { type: "button", onclick: more }, "Older")) : null);
  };
  more().catch((error) => put(place, h("p.soft", error.message)));
  return place;
}

/** Find the newest results of `ask(from, to)`: search one block, then ten, then a hundred, until there are enough. */
async function newestOf(ask) {
  const found = [];
  for (let size = 1, to = live.head?.number ?? toNumber(await call("eth_blockNumber")), end = Math.max(0, to - BACK + 1); to >= end && found.length < MOST; size *= 10) {
    const from = Math.max(end, to - size + 1);
    found.push(...(await ask(toHex(from), toHex(to))).slice(-MOST).reverse());
    to = from - 1;
  }
  return found.slice(0, MOST);
}

function calledBy(address) {
  const place = h("div", h("p.soft", "…"));
  newestOf((fromBlock, toBlock) => call("trace_filter", [{ fromBlock, toBlock, toAddress: [address], count: 1000 }])).then((found) => {
    put(place, table("Calls", ["Block", "Transaction", "From", "Kind", ["Value", "right"]], found.map((one) => [
      blockLink(one.blockNumber), one.transactionHash ? txLink(one.transactionHash) : "", one.action.from ? addressLink(one.action.from) : "", one.action.callType || one.type,
      [one.action.value ? ether(one.action.value) : "", "right"]]), "No calls in these blocks."));
  }, (error) => put(place, h("p.soft", error.isAbsent ? "Needs the group TRACE (--rpc-http-api)." : error.message)));
  return place;
}

async function logsOf(address) {
  const found = await newestOf(async (fromBlock, toBlock) => (await attempt("eth_getLogs", [{ address, fromBlock, toBlock }])) || []);
  return table("Logs", ["Block", "Transaction", "Event"], found.map((log) => [
    blockLink(toNumber(log.blockNumber)), txLink(log.transactionHash), h("span.signature", decodeEvent(log)?.signature || log.topics[0]?.slice(0, 10) || "anonymous")]), "No logs in these blocks.");
}

/* --- reading ----------------------------------------------------------------------------------- */

/** Make a form to call view functions. */
function readers(address) {
  const own = abiAt(address).abi.filter((entry) => entry.type === "function" && ["view", "pure"].includes(entry.stateMutability));
  if (!own.length) return h("p.soft", "This ABI has no view functions.");
  return h("div.stack", own.slice(0, 60).map((entry) => {
    const inputs = entry.inputs || [], fields = inputs.map((input) => h("input", { "aria-label": `${input.name || "value"} (${input.type})`, placeholder: `${input.name || ""} ${input.type}`.trim() })), answer = h("span", { role: "status" });
    const run = async (event) => {
      event.preventDefault();
      try {
        const values = inputs.map((input, at) => (/[\[(]|tuple/.test(input.type) ? JSON.parse(fields[at].value) : fields[at].value.trim()));
        const data = selector(entry) + encode(inputs, values).slice(2), output = await call("eth_call", [{ to: address, data }, "latest"]);
        const decoded = decodeOutput(entry, output);
        put(answer, decoded ? decoded.values.map(valueOf) : h("code.long", output));
      } catch (error) {
        const known = error instanceof AbiError || error instanceof RpcError || error instanceof SyntaxError;
        put(answer, h("span.bad", known ? (error.data && revertReason(error.data, address)) || error.message : "no answer"));
      }
    };
    return h("form.row", { onsubmit: run }, h("code", entry.name), fields, h("button", { type: "submit" }, "Read"), answer);
  }));
}

