// A private contract between two of three members, with the web3 extension for private transactions:
// node client.js [URL of A, B and C]. Start the network first, in another terminal: ./start.sh
const Web3 = require("web3");
const EEAClient = require("web3-eea");

const urls = process.argv.length > 4 ? process.argv.slice(2) : [8545, 8546, 8547].map((port) => `http://127.0.0.1:${port}`);
// A public test key: it is public, never use it for anything of value.
const privateKey = "8f2a55949038a9610f50fb23b5883af3b4ecb3c3bb792cbcefbd1542c692be63";
// contract Number { uint n; function set(uint) ...; function get() view returns (uint) }, compiled with solc
const code =
  "0x608060405234801561001057600080fd5b5060d08061001f6000396000f3fe60806040526004361060485763ffffffff7c0100000000000000" +
  "00000000000000000000000000000000000000000060003504166360fe47b18114604d5780636d4ce63c146075575b600080fd5b3480156058" +
  "57600080fd5b50607360048036036020811015606d57600080fd5b50356099565b005b348015608057600080fd5b506087609e565b60408051" +
  "918252519081900360200190f35b600055565b6000549056fea165627a7a72305820cb1d0935d14b589300b12fcd0ab849a7e9019c81da24d6" +
  "daa4f6b2f003d1b0180029";

async function ask(url, method, params) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const answer = await (await fetch(url, { method: "POST", headers: { "Content-Type": "application/json" }, body })).json();
  if (answer.error) throw new Error(`${method}: ${answer.error.message}`);
  return answer.result;
}

async function main() {
  const chainId = parseInt(await ask(urls[0], "eth_chainId", []), 16);
  const [a, b, c] = urls.map((url) => new EEAClient(new Web3(url), chainId));
  const keys = await Promise.all(urls.map(async (url) => (await ask(url, "priv_status", [])).keys[0]));
  const privacyGroupId = a.priv.generatePrivacyGroup({ privateFrom: keys[0], privateFor: [keys[1]] });
  const send = async (data, to) => {
    const hash = await a.eea.sendRawTransaction({ data, to, privateFrom: keys[0], privateFor: [keys[1]], privateKey });
    return a.priv.getTransactionReceipt(hash, keys[0]);
  };
  const created = await send(code);
  const contract = created.contractAddress;
  console.log(`A and B are group ${privacyGroupId}, their contract is ${contract}`);
  for (const value of [47, 123]) {
    const receipt = await send("0x60fe47b1" + value.toString(16).padStart(64, "0"), contract);
    while (parseInt(await ask(urls[1], "eth_blockNumber", []), 16) < parseInt(receipt.blockNumber, 16)) {
      await new Promise((wake) => setTimeout(wake, 50));
    }
    const call = { privacyGroupId, to: contract, data: "0x6d4ce63c", blockNumber: "latest" };
    const read = await Promise.all([a, b, c].map((member) => member.priv.call(call)));
    console.log(`A set ${value}: A reads ${parseInt(read[0])}, B reads ${parseInt(read[1])}, C reads ${read[2]}`);
  }
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
