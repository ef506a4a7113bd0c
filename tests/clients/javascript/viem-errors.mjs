// What viem makes of refused transactions.
import { KEY, TO, chainId, fee, load, tell, url } from "./packages.mjs";

const { BaseError, createPublicClient, createWalletClient, defineChain, http, parseEther } = load("viem");
const { privateKeyToAccount } = load("viem/accounts");
const chain = defineChain({ id: chainId, name: "dev", nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 }, rpcUrls: { default: { http: [url] } } });
const transport = http(url, { retryCount: 0 });
const reader = createPublicClient({ chain, transport, pollingInterval: 20 });
const account = privateKeyToAccount(KEY);
const wallet = createWalletClient({ account, chain, transport });
const poor = createWalletClient({ account: privateKeyToAccount("0x" + "77".repeat(32)), chain, transport });
const plain = { to: TO, value: 1n, gas: 21000n, maxFeePerGas: fee, maxPriorityFeePerGas: 1n, type: "eip1559" };

async function refused(name, who, request) {
  try {
    await who.sendTransaction({ ...plain, ...request });
    tell(name, "taken");
  } catch (error) {
    tell(name, error instanceof BaseError ? error.cause.name : String(error));
  }
}

await reader.waitForTransactionReceipt({ hash: await wallet.sendTransaction({ to: TO, value: 1n }) });
const nonce = await reader.getTransactionCount({ address: account.address });
await refused("nonce too low", wallet, { nonce: 0 });
await refused("insufficient funds", poor, { nonce: 0 });
await refused("value above balance", wallet, { nonce, value: parseEther("1000000") });
await refused("intrinsic gas", wallet, { nonce, gas: 20000n });
await refused("below base fee", wallet, { nonce, maxFeePerGas: 1n });
await refused("tip above fee", wallet, { nonce, maxPriorityFeePerGas: 2n * fee });
await refused("gas limit", wallet, { nonce, gas: 2n ** 54n });
await refused("waiting", wallet, { nonce: nonce + 5 });
await refused("known", wallet, { nonce: nonce + 5 });
await refused("underpriced", wallet, { nonce: nonce + 5, value: 2n });
try {
  await reader.request({ method: "no_such" });
} catch (error) {
  tell("unknown method", error.name);
}
