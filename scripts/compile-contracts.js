#!/usr/bin/env node
// Compiles the contracts of a folder (see FOLDERS) and writes compiled.json beside them, or to standard output with
// --print FOLDER. The compiler is the npm package `solc` (npm install solc@0.8.37 somewhere, NODE_PATH=.../node_modules).
//
// Compiles for the oldest EVM version with static calls, so that the contracts run on every network. Omits the metadata
// trailer, so that the bytes depend only on the sources.

const fs = require("fs");
const path = require("path");
const solc = require("solc");

const FOLDERS = ["src/ophion/permissions/contracts", "native/privacy/contracts"];

function compiled(folder) {
  const names = fs.readdirSync(folder).filter((name) => name.endsWith(".sol")).sort();
  const input = {
    language: "Solidity",
    sources: Object.fromEntries(names.map((name) => [name, { content: fs.readFileSync(path.join(folder, name), "utf8") }])),
    settings: {
      evmVersion: "byzantium",
      optimizer: { enabled: true, runs: 1000 },
      metadata: { bytecodeHash: "none", appendCBOR: false },
      outputSelection: { "*": { "*": ["evm.bytecode.object", "evm.deployedBytecode.object"] } },
    },
  };
  const output = JSON.parse(solc.compile(JSON.stringify(input)));
  const errors = (output.errors || []).filter((error) => error.severity === "error");
  if (errors.length) {
    console.error(errors.map((error) => error.formattedMessage).join("\n"));
    process.exit(1);
  }
  const contracts = {};
  for (const name of names) {
    const { bytecode, deployedBytecode } = output.contracts[name][name.slice(0, -4)].evm;
    // abstract contracts have no code of their own
    if (bytecode.object) contracts[name.slice(0, -4)] = { creation: "0x" + bytecode.object, runtime: "0x" + deployedBytecode.object };
  }
  return JSON.stringify({ compiler: solc.version().split("+")[0], contracts }, null, 1) + "\n";
}

const root = path.join(__dirname, "..");
if (process.argv[2] === "--print") process.stdout.write(compiled(path.join(root, process.argv[3])));
else for (const folder of FOLDERS) fs.writeFileSync(path.join(root, folder, "compiled.json"), compiled(path.join(root, folder)));
