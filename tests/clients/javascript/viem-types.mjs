// Every type of transaction with viem, each mined and read back.
import { KEY, OTHER, TO, chainId, given, load, tell, url } from "./packages.mjs";

const { createPublicClient, createWalletClient, defineChain, http } = load("viem");
const { privateKeyToAccount } = load("viem/accounts");
const chain = defineChain({ id: chainId, name: "dev", nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 }, rpcUrls: { default: { http: [url] } } });
const reader = createPublicClient({ chain, transport: http(url, { timeout: 90_000 }), pollingInterval: 20 });
const account = privateKeyToAccount(KEY);
const wallet = createWalletClient({ account, chain, transport: http(url, { timeout: 90_000 }) });

async function send(name, request) {
  const hash = await wallet.sendTransaction({ to: TO, value: 1n, ...request });
  const receipt = await reader.waitForTransactionReceipt({ hash });
  tell(name, { type: receipt.type, status: receipt.status, price: receipt.effectiveGasPrice });
}

await send("default", {});
await send("0", { type: "legacy" });
await send("1", { type: "eip2930", accessList: [{ address: TO, storageKeys: ["0x" + "00".repeat(32)] }] });
await send("2", { type: "eip1559" });
if (given.delegates ?? true) {
  const authority = privateKeyToAccount(OTHER);
  const permit = await authority.signAuthorization({ contractAddress: TO, chainId, nonce: await reader.getTransactionCount({ address: authority.address }) });
  await send("4", { authorizationList: [permit], gas: given.gas && BigInt(given.gas) });
  tell("delegated", await reader.getCode({ address: authority.address }));
}
if (given.blob) {
  const { blob, commitment, proof } = given.blob;
  const bytes = (text) => Uint8Array.from(Buffer.from(text.slice(2), "hex"));
  const kzg = { blobToKzgCommitment: () => bytes(commitment), computeBlobKzgProof: () => bytes(proof) };
  await send("3", { blobs: [blob], kzg, maxFeePerBlobGas: 10n });
}
const [unlocked] = await createWalletClient({ chain, transport: http(url, { timeout: 90_000 }) }).getAddresses();
const hash = await createWalletClient({ account: unlocked, chain, transport: http(url, { timeout: 90_000 }) }).sendTransaction({ to: TO, value: 1n });
await reader.waitForTransactionReceipt({ hash });
tell("unlocked", unlocked);
if (given.fills ?? true) tell("filled", (await reader.request({ method: "eth_fillTransaction", params: [{ from: unlocked, to: TO }] })).tx.type);
