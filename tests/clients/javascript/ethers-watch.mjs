// Blocks, logs and receipts as ethers hears of them while transactions come.
import { KEY, load, given, tell, url, websocket } from "./packages.mjs";

const { Contract, ContractFactory, JsonRpcProvider, Wallet, WebSocketProvider } = load("ethers");
const provider = new JsonRpcProvider(url, undefined, { pollingInterval: 20, cacheTimeout: -1 });
const listener = new WebSocketProvider(websocket);
const wallet = new Wallet(KEY, provider);
const factory = new ContractFactory(given.abi, given.bytecode, wallet);
const counter = await (await factory.deploy(0n)).waitForDeployment();
const address = await counter.getAddress();
const received = { blocks: [], logs: 0, polled: 0 };
await listener.on("block", (number) => received.blocks.push(number));
await new Contract(address, given.abi, listener).on("Counted", () => received.logs++);
await new Contract(address, given.abi, provider).on("Counted", () => received.polled++);
const from = await provider.getBlockNumber();
await new Promise((resolve) => setTimeout(resolve, 200));

let sent = 0;
let nonce = await wallet.getNonce();
const until = Date.now() + given.seconds * 1000;
while (Date.now() < until) {
  const batch = [];
  for (let one = 0; one < 10; one++) batch.push(counter.add(1n, { nonce: nonce++, gasLimit: 200000n }));
  const receipts = await Promise.all((await Promise.all(batch)).map((response) => response.wait()));
  sent += receipts.filter((receipt) => receipt.status === 1).length;
}
const last = await provider.getBlockNumber();
for (let tries = 0; tries < 200 && (received.polled < sent || received.logs < sent || received.blocks.at(-1) < last); tries++)
  await new Promise((resolve) => setTimeout(resolve, 50));
const expected = Array.from({ length: last - from }, (_, index) => from + 1 + index);
const seen = received.blocks.filter((number) => number > from);
tell("sent", sent);
tell("count", await counter.count());
tell("logs", received.logs);
tell("polled", received.polled);
tell("every block in order", JSON.stringify(seen) === JSON.stringify(expected));
listener.destroy();
provider.destroy();
