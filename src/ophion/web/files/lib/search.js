/* Resolve a search text: block, transaction, address, node name, method. */

import { attempt } from "./rpc.js";
import { names } from "./format.js";

export async function destination(text) {
  const bare = text.replace(/[\s,_]/g, "");
  if (/^\d{1,15}$/.test(bare)) return `#/block/${bare}`;
  if (/^(latest|earliest|pending|safe|finalized)$/i.test(text)) return `#/block/${text.toLowerCase()}`;
  const hex = /^(?:0x)?([0-9a-f]+)$/i.exec(bare)?.[1].toLowerCase();
  if (hex?.length === 40) return `#/address/0x${hex}`;
  if (hex?.length === 64) {
    const [transaction, block] = await Promise.all([attempt("eth_getTransactionByHash", [`0x${hex}`]), attempt("eth_getBlockByHash", [`0x${hex}`, false])]);
    return transaction ? `#/tx/0x${hex}` : block ? `#/block/0x${hex}` : `#/search/${encodeURIComponent(text)}`;
  }
  if (/^0x[0-9a-f]{1,15}$/i.test(bare)) return `#/block/${Number(bare)}`;
  const named = [...names].find(([, name]) => name.toLowerCase() === text.toLowerCase());
  if (named) return `#/address/${named[0]}`;
  if (/^[a-z0-9]+_\w+$/i.test(text)) return `#/playground/${text}`;
  return `#/search/${encodeURIComponent(text)}`;
}
