/* Example documents and their variables. */

import { formatDocument } from "./formatter.js";

const TEXTS = {
  "Newest block": ["{ block { number hash timestamp transactionCount gasUsed gasLimit miner { address } } }", ""],
  "A range of blocks": ["query Range($from: Long!, $to: Long) { blocks(from: $from, to: $to) { number transactions { hash from { address } value status } } }", { from: 0, to: 10 }],
  "An account": ["query Account($address: Address!) { account(address: $address) { balance transactionCount code } }", { address: "0xfe3b557e8fb62b89f4916b721be55ceb828dbd73" }],
  "Logs of the newest block": ["{ block { logs(filter: {}) { index account { address } topics data } } }", ""],
  "Pending transactions": ["{ pending { transactionCount transactions { hash nonce } } gasPrice }", ""],
};

export const EXAMPLES = Object.fromEntries(Object.entries(TEXTS).map(([name, [text, variables]]) => [name, [formatDocument(text), variables ? JSON.stringify(variables, null, 2) : ""]]));
