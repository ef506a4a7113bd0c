/* Blocks without their transaction lists, which may hold ten thousand hashes each.
 *
 * GraphQL returns transaction counts for a range of blocks. Without GraphQL, JSON-RPC loads a few full blocks. */

import { call, events, headers as requestHeaders } from "./rpc.js";
import { hasService } from "./nodes.js";
import { toHex, toNumber } from "./format.js";

const FIELDS = "number hash timestamp transactionCount gasUsed gasLimit miner { address }", MAX_IN_FULL = 12;
let isRefused = false;
events.addEventListener("token", () => { isRefused = false; });

/** Return the newest blocks of the range `from` to `to`, within a limit: number, hash, timestamp, miner, txs, gasUsed, gasLimit. */
export async function headers(from, to) {
  return (await byGraphql(from, to)) || Promise.all(numbers(Math.max(from, to - MAX_IN_FULL + 1), to).map(async (number) => summary(await call("eth_getBlockByNumber", [toHex(number), false]))));
}

const numbers = (from, to) => Array.from({ length: to - from + 1 }, (_, at) => to - at);

async function byGraphql(from, to) {
  if (!hasService("graphql") || isRefused) return null;
  const response = await fetch("graphql", { method: "POST", headers: requestHeaders(), body: JSON.stringify({ query: `{blocks(from:${from},to:${to}){${FIELDS}}}` }) });
  if (!response.ok) {
    isRefused = response.status !== 502 && response.status !== 503;
    return null;
  }
  return (await response.json()).data.blocks.map((block) => ({
    number: Number(block.number), hash: block.hash, timestamp: toNumber(block.timestamp), arrived: Date.now() / 1000, miner: block.miner.address,
    txs: block.transactionCount, gasUsed: Number(block.gasUsed), gasLimit: Number(block.gasLimit),
  })).reverse();
}

/** Return the fields that `headers` returns, from a JSON-RPC block or a `newHeads` header. The latter has no transaction count. */
export function summary(block) {
  return {
    number: toNumber(block.number), hash: block.hash, timestamp: toNumber(block.timestamp), arrived: Date.now() / 1000, miner: block.miner,
    txs: block.transactions ? block.transactions.length : null, gasUsed: toNumber(block.gasUsed), gasLimit: toNumber(block.gasLimit),
  };
}
