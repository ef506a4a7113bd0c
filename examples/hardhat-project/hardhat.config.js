require("@nomicfoundation/hardhat-ethers");
const { subtask } = require("hardhat/config");
const { TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD } = require("hardhat/builtin-tasks/task-names");

// Use the compiler of the npm package `solc`, so that Hardhat does not download a compiler.
subtask(TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD, async () => ({
  compilerPath: require.resolve("solc/soljson.js"),
  isSolcJs: true,
  version: "0.8.30",
  longVersion: require("solc/package.json").version,
}));

// Public test keys of the dev network: they are public, never use them for anything of value.
const accounts = [
  "0xc87509a1c067bbde78beb793e6fa76530b6382a4c0241e5e4a9ec0a0f44dc0d3",
  "0xae6ae8e5ccbfb04590405997ee2d52d2b330726137b875053c36d94e974d162f",
];

module.exports = {
  solidity: "0.8.30",
  defaultNetwork: "ophion",
  networks: { ophion: { url: process.env.OPHION_URL ?? "http://127.0.0.1:8545", accounts } },
};
