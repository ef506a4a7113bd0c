/* Blocks, newest first; the first page follows the chain. */

import { h, put, table } from "../lib/dom.js";
import { ago, blockLink, count, proposerLink, short, toNumber } from "../lib/format.js";
import { headers } from "../lib/headers.js";
import { live, onChange } from "../lib/live.js";
import { call } from "../lib/rpc.js";

const ROWS = 25;

export async function show(root, [wanted]) {
  const body = h("div"), foot = h("nav.pager", { "aria-label": "Pages" });
  put(root, h("div.title.spread", h("h1", "Blocks"), h("a", { href: "#/abis" }, "Known contracts")), h("section.card", body, foot));
  if (wanted !== undefined && /^\d+$/.test(wanted)) {
    const top = Math.min(Number(wanted), toNumber(await call("eth_blockNumber")));
    await page(body, foot, top, false);
    return null;
  }
  const latest = toNumber(await call("eth_blockNumber"));
  let shown = latest, isBusy = false;
  await page(body, foot, latest, true);
  return onChange(async () => {
    if (isBusy || !live.head || live.head.number === shown) return;
    isBusy = true;
    shown = live.head.number;
    try {
      await page(body, foot, shown, true);
    } catch { /* ignore the error: the next block repeats the request */ }
    isBusy = false;
  });
}

async function page(body, foot, top, isFirst) {
  const blocks = await headers(Math.max(0, top - ROWS + 1), top), lowest = blocks.at(-1).number;
  put(body, table("Blocks", ["Block", "Time", ["Transactions", "right"], "Gas used", "Proposer", "Hash"], blocks.map((block) => [
    blockLink(block.number), ago(block.timestamp), [count(block.txs), "right"], [bar(block.gasUsed / (block.gasLimit || 1)), count(block.gasUsed)],
    proposerLink(block.miner), h("a.hash", { href: `#/block/${block.hash}` }, short(block.hash))])));
  put(foot, h("span.soft", `${count(lowest)} to ${count(top)}`), isFirst ? null : h("a", { href: "#/blocks" }, "Newest"),
    isFirst ? null : h("a", { href: `#/blocks/${top + ROWS}` }, "Newer"), lowest > 0 ? h("a", { href: `#/blocks/${lowest - 1}` }, "Older") : null);
}

export function bar(share) {
  const inside = h("span");
  inside.style.width = `${Math.min(100, share * 100).toFixed(1)}%`;
  return h("span.bar", { role: "img", "aria-label": `${(share * 100).toFixed(0)} percent` }, inside);
}
