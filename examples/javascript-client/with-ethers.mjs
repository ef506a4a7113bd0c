// Deploy a contract with ethers v6 and use it: node with-ethers.mjs [URL]
import { readFileSync } from "node:fs";
import { ContractFactory, JsonRpcProvider, NonceManager, Wallet, isCallException } from "ethers";

// A public test key of the dev network: it is public, never use it for anything of value.
const KEY = "0xc87509a1c067bbde78beb793e6fa76530b6382a4c0241e5e4a9ec0a0f44dc0d3";
const compiled = JSON.parse(readFileSync(new URL("../python-client/Counter.json", import.meta.url)));

const provider = new JsonRpcProvider(process.argv[2] ?? "http://127.0.0.1:8545", undefined, { pollingInterval: 20 });
const signer = new NonceManager(new Wallet(KEY, provider));
const network = await provider.getNetwork();
console.log(`chain ${network.chainId}, block ${await provider.getBlockNumber()}`);

const counter = await new ContractFactory(compiled.abi, compiled.bytecode, signer).deploy(40);
await counter.waitForDeployment();
console.log(`deployed at ${await counter.getAddress()}`);

const receipt = await (await counter.add(2)).wait();
const event = counter.interface.parseLog(receipt.logs[0]);
console.log(`counted to ${event.args.count} by ${event.args.who}`);
console.log(`count() answers ${await counter.count()}`);
console.log(`events found: ${(await counter.queryFilter(counter.filters.Counted(), 0)).length}`);

try {
  await counter.add.staticCall(1000);
} catch (error) {
  if (!isCallException(error)) throw error;
  console.log(`add(1000) reverts: ${error.revert.name}(${error.revert.args})`);
}
provider.destroy();
