// Every test action of viem: says for each what came of it.
import { TO, load, tell, url } from "./packages.mjs";

const { createTestClient, http, publicActions, walletActions } = load("viem");
const { foundry } = load("viem/chains");
const client = createTestClient({ chain: foundry, mode: "anvil", transport: http(url, { timeout: 60_000 }) })
  .extend(publicActions)
  .extend(walletActions);
const [first] = await client.getAddresses();

async function check(name, action) {
  try {
    tell(name, await action());
  } catch (error) {
    tell(name, `failed: ${error.shortMessage ?? error.message}`);
  }
}

await check("setBalance", async () => {
  await client.setBalance({ address: TO, value: 10n ** 20n });
  return client.getBalance({ address: TO });
});
await check("setCode", async () => {
  await client.setCode({ address: TO, bytecode: "0x6001" });
  return client.getCode({ address: TO });
});
await check("setNonce", async () => {
  await client.setNonce({ address: TO, nonce: 7 });
  return client.getTransactionCount({ address: TO });
});
await check("setStorageAt", async () => {
  await client.setStorageAt({ address: TO, index: 2, value: `0x${"00".repeat(31)}09` });
  return client.getStorageAt({ address: TO, slot: "0x2" });
});
await check("mine", async () => {
  const before = await client.getBlockNumber({ cacheTime: 0 });
  await client.mine({ blocks: 5, interval: 3 });
  return (await client.getBlockNumber({ cacheTime: 0 })) - before;
});
await check("snapshot and revert", async () => {
  const id = await client.snapshot();
  const before = await client.getBlockNumber({ cacheTime: 0 });
  await client.mine({ blocks: 2 });
  await client.revert({ id });
  return (await client.getBlockNumber({ cacheTime: 0 })) - before;
});
await check("increaseTime", async () => {
  const before = (await client.getBlock()).timestamp;
  await client.increaseTime({ seconds: 500 });
  await client.mine({ blocks: 1 });
  return (await client.getBlock()).timestamp - before >= 500n;
});
await check("setNextBlockTimestamp", async () => {
  const wanted = (await client.getBlock()).timestamp + 1000n;
  await client.setNextBlockTimestamp({ timestamp: wanted });
  await client.mine({ blocks: 1 });
  return (await client.getBlock()).timestamp - wanted;
});
await check("setBlockTimestampInterval", async () => {
  await client.setBlockTimestampInterval({ interval: 9 });
  const before = (await client.getBlock()).timestamp;
  await client.mine({ blocks: 1 });
  const passed = (await client.getBlock()).timestamp - before;
  await client.removeBlockTimestampInterval();
  return passed;
});
await check("setBlockGasLimit", async () => {
  await client.setBlockGasLimit({ gasLimit: 25_000_000n });
  await client.mine({ blocks: 1 });
  return (await client.getBlock()).gasLimit;
});
await check("setNextBlockBaseFeePerGas", async () => {
  await client.setNextBlockBaseFeePerGas({ baseFeePerGas: 2_000_000_000n });
  await client.mine({ blocks: 1 });
  return (await client.getBlock()).baseFeePerGas;
});
await check("setCoinbase", async () => {
  await client.setCoinbase({ address: TO });
  await client.mine({ blocks: 1 });
  return (await client.getBlock()).miner;
});
await check("impersonateAccount", async () => {
  await client.impersonateAccount({ address: TO });
  const hash = await client.sendTransaction({ account: TO, to: first, value: 1n });
  const receipt = await client.waitForTransactionReceipt({ hash, pollingInterval: 20 });
  await client.stopImpersonatingAccount({ address: TO });
  return receipt.status;
});
await check("automine", async () => {
  await client.setAutomine(false);
  const isOn = await client.getAutomine();
  const hash = await client.sendTransaction({ account: first, to: TO, value: 1n });
  const status = await client.getTxpoolStatus();
  const content = await client.getTxpoolContent();
  const inspected = await client.inspectTxpool();
  await client.dropTransaction({ hash });
  const left = await client.getTxpoolStatus();
  await client.setAutomine(true);
  return [isOn, status.pending, Object.keys(content.pending).length, Object.keys(inspected.pending).length, left.pending];
});
await check("setIntervalMining", async () => {
  await client.setIntervalMining({ interval: 0 });
  await client.setAutomine(true);
  return true;
});
await check("dumpState and loadState", async () => {
  const state = await client.dumpState();
  await client.setBalance({ address: TO, value: 1n });
  await client.loadState({ state });
  return (await client.getBalance({ address: TO })) > 1n;
});
await check("sendUnsignedTransaction", async () => {
  const hash = await client.sendUnsignedTransaction({ from: first, to: TO, value: 1n });
  return (await client.waitForTransactionReceipt({ hash, pollingInterval: 20 })).status;
});
await check("setLoggingEnabled", async () => (await client.setLoggingEnabled(false)) ?? true);
await check("reset", async () => {
  await client.reset();
  return client.getBlockNumber({ cacheTime: 0 });
});
