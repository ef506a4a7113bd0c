// Every function of hardhat-network-helpers, on the network that Hardhat is told: says for each what came of it.
const helpers = require("@nomicfoundation/hardhat-network-helpers");
const hre = require("hardhat");

const OTHER = "0x00000000000000000000000000000000000000d0";
const ask = (method, ...params) => hre.network.provider.request({ method, params });
const tell = (name, value) =>
  console.log("@" + JSON.stringify([name, value], (_, one) => (typeof one === "bigint" ? one.toString() : one)));

async function check(name, action) {
  try {
    tell(name, await action());
  } catch (error) {
    tell(name, `failed: ${error.message}`);
  }
}

async function main() {
  const { time } = helpers;
  await check("mine", async () => {
    const before = await time.latestBlock();
    await helpers.mine(1000, { interval: 15 });
    return (await time.latestBlock()) - before;
  });
  await check("mine one", async () => {
    const before = await time.latestBlock();
    await helpers.mine();
    return (await time.latestBlock()) - before;
  });
  await check("mineUpTo", async () => {
    const wanted = (await time.latestBlock()) + 20;
    await helpers.mineUpTo(wanted);
    return (await time.latestBlock()) - wanted;
  });
  await check("time.increase", async () => {
    const before = await time.latest();
    return (await time.increase(3600)) - before;
  });
  await check("time.increaseTo", async () => {
    const wanted = (await time.latest()) + 5000;
    await time.increaseTo(wanted);
    return (await time.latest()) - wanted;
  });
  await check("time.setNextBlockTimestamp", async () => {
    const wanted = (await time.latest()) + 77;
    await time.setNextBlockTimestamp(wanted);
    await helpers.mine();
    return (await time.latest()) - wanted;
  });
  await check("setBalance", async () => {
    await helpers.setBalance(OTHER, 10n ** 20n);
    return BigInt(await ask("eth_getBalance", OTHER, "latest"));
  });
  await check("setCode", async () => {
    await helpers.setCode(OTHER, "0x6001");
    return ask("eth_getCode", OTHER, "latest");
  });
  await check("setNonce", async () => {
    await helpers.setNonce(OTHER, 9);
    return ask("eth_getTransactionCount", OTHER, "latest");
  });
  await check("setStorageAt and getStorageAt", async () => {
    await helpers.setStorageAt(OTHER, 3, 17);
    return helpers.getStorageAt(OTHER, 3);
  });
  await check("setCoinbase", async () => {
    await helpers.setCoinbase(OTHER);
    await helpers.mine();
    return (await ask("eth_getBlockByNumber", "latest", false)).miner;
  });
  await check("setBlockGasLimit", async () => {
    await helpers.setBlockGasLimit(20_000_000);
    await helpers.mine();
    return (await ask("eth_getBlockByNumber", "latest", false)).gasLimit;
  });
  await check("setNextBlockBaseFeePerGas", async () => {
    await helpers.setNextBlockBaseFeePerGas(2_000_000_000);
    await helpers.mine();
    return (await ask("eth_getBlockByNumber", "latest", false)).baseFeePerGas;
  });
  await check("setPrevRandao", async () => {
    await helpers.setPrevRandao(42);
    await helpers.mine();
    return (await ask("eth_getBlockByNumber", "latest", false)).mixHash;
  });
  await check("impersonateAccount", async () => {
    await helpers.impersonateAccount(OTHER);
    const hash = await ask("eth_sendTransaction", { from: OTHER, to: OTHER, value: "0x1" });
    await helpers.stopImpersonatingAccount(OTHER);
    return (await ask("eth_getTransactionReceipt", hash)).status;
  });
  await check("takeSnapshot", async () => {
    const before = await time.latestBlock();
    const snapshot = await helpers.takeSnapshot();
    await helpers.mine(5);
    await snapshot.restore();
    const between = await time.latestBlock();
    await helpers.mine(2);
    await snapshot.restore();
    return [between - before, (await time.latestBlock()) - before];
  });
  await check("loadFixture", async () => {
    let runs = 0;
    async function fixture() {
      runs += 1;
      await helpers.mine(3);
      return time.latestBlock();
    }
    const first = await helpers.loadFixture(fixture);
    await helpers.mine(2);
    await helpers.loadFixture(fixture);
    return [runs, (await time.latestBlock()) - first];
  });
  await check("dropTransaction", async () => {
    await ask("evm_setAutomine", false);
    const [from] = await ask("eth_accounts");
    const hash = await ask("eth_sendTransaction", { from, to: OTHER, value: "0x1" });
    const dropped = await helpers.dropTransaction(hash);
    await ask("evm_setAutomine", true);
    return dropped;
  });
  await check("reset", async () => {
    await helpers.reset();
    return time.latestBlock();
  });
}

main();
