// Blocks, logs and receipts as viem hears of them while transactions come.
import { KEY, load, given, tell, url, websocket } from "./packages.mjs";

const { createPublicClient, createWalletClient, defineChain, getContract, http, webSocket } = load("viem");
const { privateKeyToAccount } = load("viem/accounts");
const chain = defineChain({ id: 2018, name: "dev", nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 }, rpcUrls: { default: { http: [url] } } });
const account = privateKeyToAccount(KEY);
const reader = createPublicClient({ chain, transport: http(url, { timeout: 90_000 }), pollingInterval: 20, cacheTime: 0 });
const listener = createPublicClient({ chain, transport: webSocket(websocket) });
const wallet = createWalletClient({ account, chain, transport: http(url, { timeout: 90_000 }) });
const { abi, bytecode } = given;
const deployment = await wallet.deployContract({ abi, bytecode, args: [0n] });
const { contractAddress: address } = await reader.waitForTransactionReceipt({ hash: deployment });
const counter = getContract({ address, abi, client: { public: reader, wallet } });
const received = { blocks: [], logs: 0, polled: 0 };
const from = await reader.getBlockNumber();
const watches = [
  listener.watchBlocks({ onBlock: (block) => received.blocks.push(block.number) }),
  listener.watchContractEvent({ address, abi, eventName: "Counted", onLogs: (logs) => (received.logs += logs.length) }),
  reader.watchContractEvent({ address, abi, eventName: "Counted", onLogs: (logs) => (received.polled += logs.length) }),
];
await new Promise((resolve) => setTimeout(resolve, 300));

let sent = 0;
let nonce = await reader.getTransactionCount({ address: account.address });
const until = Date.now() + given.seconds * 1000;
while (Date.now() < until) {
  const batch = [];
  for (let one = 0; one < 10; one++) batch.push(counter.write.add([1n], { nonce: nonce++, gas: 200000n, maxFeePerGas: 1000n, maxPriorityFeePerGas: 0n }));
  const hashes = await Promise.all(batch);
  const receipts = await Promise.all(hashes.map((hash) => reader.waitForTransactionReceipt({ hash })));
  sent += receipts.filter((receipt) => receipt.status === "success").length;
}
const last = await reader.getBlockNumber();
for (let tries = 0; tries < 200 && (received.polled < sent || received.logs < sent || received.blocks.at(-1) < last); tries++)
  await new Promise((resolve) => setTimeout(resolve, 50));
const expected = Array.from({ length: Number(last - from) }, (_, index) => (from + 1n + BigInt(index)).toString());
const seen = received.blocks.filter((number) => number > from).map(String);
tell("sent", sent);
tell("count", await counter.read.count());
tell("logs", received.logs);
tell("polled", received.polled);
tell("every block in order", JSON.stringify(seen) === JSON.stringify(expected));
watches.forEach((stop) => stop());
process.exit(0); // its socket would come back
