#!/usr/bin/env node
// The Solidity compiler of npm under the command line of the native one, for tools that want a program.
const { createRequire } = require("node:module");
const load = createRequire(`${process.env.SOLC_FOLDER}/package.json`);
const solc = load("solc");

if (process.argv.includes("--version")) {
  const version = solc.version().replace(".Emscripten.clang", ".Linux.g++");
  console.log(`solc, the solidity compiler commandline interface\nVersion: ${version}`);
} else {
  const chunks = [];
  process.stdin.on("data", (chunk) => chunks.push(chunk));
  process.stdin.on("end", () => process.stdout.write(solc.compile(Buffer.concat(chunks).toString())));
}
