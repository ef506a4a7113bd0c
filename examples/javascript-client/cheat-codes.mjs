// Control a development chain with viem's test client: node cheat-codes.mjs [URL]
// Start the node with: ophion dev --preset=anvil
import { createTestClient, http, parseEther, publicActions, walletActions } from "viem";
import { foundry } from "viem/chains";

const url = process.argv[2] ?? "http://127.0.0.1:8545";
const client = createTestClient({ chain: foundry, mode: "anvil", transport: http(url), pollingInterval: 20 })
  .extend(publicActions)
  .extend(walletActions);

const first = await client.getBlock();
const snapshot = await client.snapshot();

await client.mine({ blocks: 1000, interval: 12 });
const [oldest, newest] = [await client.getBlock({ blockNumber: first.number + 1n }), await client.getBlock()];
const interval = (newest.timestamp - oldest.timestamp) / (newest.number - oldest.number);
console.log(`mined ${newest.number - first.number} blocks, ${interval} seconds apart`);

// act as an account without its key
const account = "0x00000000000000000000000000000000000a11ce";
await client.setBalance({ address: account, value: parseEther("10") });
await client.impersonateAccount({ address: account });
const hash = await client.sendTransaction({ account, to: "0x00000000000000000000000000000000000000b0", value: 1n });
const receipt = await client.waitForTransactionReceipt({ hash });
console.log(`impersonated transaction: ${receipt.status}`);
await client.stopImpersonatingAccount({ address: account });

// undo everything
await client.revert({ id: snapshot });
const { number } = await client.getBlock();
console.log(`back at block ${number} of ${first.number}, balance ${await client.getBalance({ address: account })}`);
