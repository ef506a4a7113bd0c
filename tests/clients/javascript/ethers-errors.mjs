// What ethers makes of refused transactions.
import { KEY, TO, chainId, fee, load, tell, url } from "./packages.mjs";

const { JsonRpcProvider, Wallet, parseEther } = load("ethers");
const provider = new JsonRpcProvider(url, undefined, { pollingInterval: 20, cacheTimeout: -1 });
const wallet = new Wallet(KEY, provider);
const poor = new Wallet("0x" + "77".repeat(32), provider);
const plain = { to: TO, value: 1n, gasLimit: 21000n, maxFeePerGas: fee, maxPriorityFeePerGas: 1n, chainId, type: 2 };

async function refused(name, who, request) {
  try {
    const signed = await who.signTransaction({ ...plain, ...request });
    await provider.broadcastTransaction(signed);
    tell(name, "taken");
  } catch (error) {
    tell(name, error.code);
  }
}

await (await wallet.sendTransaction({ to: TO, value: 1n })).wait();
const nonce = await wallet.getNonce();
await refused("nonce too low", wallet, { nonce: 0 });
await refused("insufficient funds", poor, { nonce: 0 });
await refused("value above balance", wallet, { nonce, value: parseEther("1000000") });
await refused("intrinsic gas", wallet, { nonce, gasLimit: 20000n });
await refused("below base fee", wallet, { nonce, maxFeePerGas: 1n });
await refused("tip above fee", wallet, { nonce, maxPriorityFeePerGas: 2n * fee });
await refused("gas limit", wallet, { nonce, gasLimit: 2n ** 54n });
await refused("other chain", wallet, { nonce, chainId: 1 });
await refused("waiting", wallet, { nonce: nonce + 5 });
await refused("known", wallet, { nonce: nonce + 5 });
await refused("underpriced", wallet, { nonce: nonce + 5, value: 2n });
try {
  await provider.send("no_such", []);
} catch (error) {
  tell("unknown method", error.code);
}
provider.destroy();
