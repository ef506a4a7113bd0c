/* Block view: header fields and paged transactions. */

import { card, copyable, facts, h, put, table } from "../lib/dom.js";
import { addressLink, ago, blockLink, bytes, count, date, ether, proposerLink, printable, toHex, toNumber, txLink } from "../lib/format.js";
import { decodeInput } from "../lib/abi_store.js";
import { attempt, call } from "../lib/rpc.js";
import { bar } from "./blocks.js";

const ROWS = 25;

export async function show(root, [wanted = "latest"], query) {
  const block = await (wanted.length === 66 ? call("eth_getBlockByHash", [wanted, false]) : call("eth_getBlockByNumber", [/^\d+$/.test(wanted) ? toHex(wanted) : wanted, false]));
  if (!block) {
    const newest = toNumber(await call("eth_blockNumber"));
    put(root, h("h1", `Block ${wanted} not found`), card("Chain head", h("p", "The newest block is ", blockLink(newest), ".")));
    return;
  }
  const number = toNumber(block.number), total = block.transactions.length, pages = Math.ceil(total / ROWS);
  const at = Math.min(Math.max(0, Number(query.get("page")) || 0), Math.max(0, pages - 1));
  put(root,
    h("div.title", h("h1", `Block ${count(number)}`), block.hash ? h("span.hash", copyable(block.hash)) : h("span.pill.worry", "pending"),
      h("span.row", number > 0 ? h("a", { href: `#/block/${number - 1}`, rel: "prev" }, "← previous") : null, h("a", { href: `#/block/${number + 1}`, rel: "next" }, "next →"))),
    h("div.columns", card("Summary", summary(block)), card("Roots and other fields", rest(block))),
    h("section.card", h("header", h("h2", `${count(total)} ${total === 1 ? "transaction" : "transactions"}`)), await transactions(block, at),
      pages > 1 ? h("nav.pager", { "aria-label": "Pages" }, h("span.soft", `page ${at + 1} of ${count(pages)}`),
        at > 0 ? h("a", { href: `#/block/${wanted}?page=${at - 1}` }, "Previous") : null, at < pages - 1 ? h("a", { href: `#/block/${wanted}?page=${at + 1}` }, "Next") : null) : null));
}

function summary(block) {
  const time = toNumber(block.timestamp), used = toNumber(block.gasUsed), limit = toNumber(block.gasLimit), extra = printable(block.extraData);
  return facts([
    ["Time", date(time), h("span.soft", ` ${ago(time)}`)],
    ["Proposer", proposerLink(block.miner, true)],
    ["Gas used", bar(used / (limit || 1)), `${count(used)} of ${count(limit)}`],
    block.baseFeePerGas ? ["Base fee", ether(block.baseFeePerGas)] : null,
    ["Size", bytes(toNumber(block.size))],
    ["Parent", h("a.hash.long", { href: `#/block/${block.parentHash}` }, block.parentHash)],
    ["Extra data", extra ? h("span", `“${extra.slice(0, 64)}” `) : null, h("code.long", block.extraData.length > 260 ? `${block.extraData.slice(0, 260)}… (${(block.extraData.length - 2) / 2} bytes)` : block.extraData)],
  ]);
}

function rest(block) {
  const hash = (name, field) => (block[field] ? [name, h("code.long", block[field])] : null);
  return facts([
    hash("State root", "stateRoot"), hash("Transactions root", "transactionsRoot"), hash("Receipts root", "receiptsRoot"),
    ["Difficulty", count(block.difficulty)], block.totalDifficulty ? ["Total difficulty", count(block.totalDifficulty)] : null, hash("Nonce", "nonce"), hash("Mix hash", "mixHash"),
    block.uncles.length ? ["Ommers", block.uncles.map((one) => h("div", h("code.long", one)))] : null,
    block.withdrawals?.length ? ["Withdrawals", count(block.withdrawals.length)] : null,
  ]);
}

async function transactions(block, page) {
  const hashes = block.transactions.slice(page * ROWS, (page + 1) * ROWS);
  const [found, receipts] = await Promise.all([Promise.all(hashes.map((hash) => attempt("eth_getTransactionByHash", [hash]))), Promise.all(hashes.map((hash) => attempt("eth_getTransactionReceipt", [hash])))]);
  return transactionTable(found.filter(Boolean), receipts, "This block has no transactions.");
}

/** Make a table of transactions with their status. */
export function transactionTable(list, receipts, empty) {
  return table("Transactions", ["Transaction", "From", "To", "Calls", ["Value", "right"], ["Gas used", "right"], "Status"], list.map((one, at) => {
    const receipt = receipts[at], input = one.input || "0x", decoded = one.to ? decodeInput(input, one.to) : null;
    return [
      txLink(one.hash), addressLink(one.from), one.to ? addressLink(one.to) : receipt?.contractAddress ? addressLink(receipt.contractAddress) : h("span.soft", "new contract"),
      !one.to ? h("span.soft", "deploys") : input === "0x" ? h("span.soft", "transfer") : h("code", decoded ? decoded.entry.name : input.slice(0, 10)),
      [ether(one.value), "right"], [receipt ? count(toNumber(receipt.gasUsed)) : "", "right"], statusPill(receipt)];
  }), empty);
}

export function statusPill(receipt) {
  if (!receipt) return h("span.pill.worry", "pending");
  if (receipt.status === undefined || receipt.status === null) return h("span.pill", "done");
  return toNumber(receipt.status) ? h("span.pill.good", "success") : h("span.pill.bad", "failed");
}
