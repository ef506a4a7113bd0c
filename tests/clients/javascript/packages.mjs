// Packages of a folder given by name: the scripts lie elsewhere than what they use.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

export const [url, websocket, folder, file] = process.argv.slice(2);
export const load = createRequire(`${folder}/package.json`);
export const given = JSON.parse(readFileSync(file));
export const chainId = given.chainId ?? 2018;
export const fee = BigInt(given.fee ?? 1000); // enough for the base fee of the chain

// A public test key of the dev network: everybody knows it, never use it for anything of value.
export const KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
export const OTHER = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
export const TO = "0x00000000000000000000000000000000000000d0";

export function tell(name, value) {
  console.log(JSON.stringify([name, value], (_, one) => (typeof one === "bigint" ? one.toString() : one)));
}
