// Every type of transaction with ethers, each mined and read back.
import { KEY, OTHER, TO, chainId, given, load, tell, url } from "./packages.mjs";

const { JsonRpcProvider, Wallet } = load("ethers");
const provider = new JsonRpcProvider(url, undefined, { pollingInterval: 20, cacheTimeout: -1 });
const wallet = new Wallet(KEY, provider);

async function send(name, request) {
  const response = await wallet.sendTransaction({ to: TO, value: 1n, ...request });
  const receipt = await response.wait();
  tell(name, { type: receipt.type, status: receipt.status, price: receipt.gasPrice });
}

await send("default", {});
await send("0", { type: 0 });
await send("1", { type: 1, accessList: [{ address: TO, storageKeys: ["0x" + "00".repeat(32)] }] });
await send("2", { type: 2 });
if (given.delegates ?? true) {
  const authority = new Wallet(OTHER, provider);
  const permit = await authority.authorize({ address: TO, nonce: await authority.getNonce(), chainId });
  await send("4", { type: 4, authorizationList: [permit], gasLimit: given.gas && BigInt(given.gas) });
  tell("delegated", await provider.getCode(authority.address));
}
if (given.blob) {
  const { blob, commitment, proof } = given.blob;
  const hash = given.blob.hash;
  await send("3", { type: 3, maxFeePerBlobGas: 10n, blobs: [{ data: blob, commitment, proof }], blobVersionedHashes: [hash] });
}
const signer = await provider.getSigner(0);
await (await signer.sendTransaction({ to: TO, value: 1n })).wait();
tell("unlocked", await signer.getAddress());
provider.destroy();
