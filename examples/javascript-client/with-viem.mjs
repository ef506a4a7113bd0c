// Deploy a contract with viem and use it: node with-viem.mjs [URL]
import { readFileSync } from "node:fs";
import { ContractFunctionRevertedError, createPublicClient, createWalletClient, defineChain, getContract, http, parseEventLogs } from "viem";
import { privateKeyToAccount } from "viem/accounts";

// A public test key of the dev network: it is public, never use it for anything of value.
const KEY = "0xae6ae8e5ccbfb04590405997ee2d52d2b330726137b875053c36d94e974d162f";
const url = process.argv[2] ?? "http://127.0.0.1:8545";
const { abi, bytecode } = JSON.parse(readFileSync(new URL("../python-client/Counter.json", import.meta.url)));

const chain = defineChain({
  id: await createPublicClient({ transport: http(url) }).getChainId(), // 2018 on the dev network
  name: "Ophion",
  nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
  rpcUrls: { default: { http: [url] } },
});
const account = privateKeyToAccount(KEY);
const reader = createPublicClient({ chain, transport: http(), pollingInterval: 20 });
const wallet = createWalletClient({ account, chain, transport: http() });
console.log(`chain ${await reader.getChainId()}, block ${await reader.getBlockNumber()}`);

const deployment = await wallet.deployContract({ abi, bytecode, args: [40n] });
const { contractAddress } = await reader.waitForTransactionReceipt({ hash: deployment });
console.log(`deployed at ${contractAddress}`);
const counter = getContract({ address: contractAddress, abi, client: { public: reader, wallet } });

const receipt = await reader.waitForTransactionReceipt({ hash: await counter.write.add([2n]) });
const [event] = parseEventLogs({ abi, logs: receipt.logs });
console.log(`counted to ${event.args.count} by ${event.args.who}`);
console.log(`count() answers ${await counter.read.count()}`);
console.log(`events found: ${(await counter.getEvents.Counted({}, { fromBlock: 0n })).length}`);

try {
  await counter.simulate.add([1000n]);
} catch (error) {
  const reverted = error.walk((cause) => cause instanceof ContractFunctionRevertedError);
  if (!reverted) throw error;
  console.log(`add(1000) reverts: ${reverted.data.errorName}(${reverted.data.args})`);
}
