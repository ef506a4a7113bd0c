const assert = require("node:assert");
const { ethers } = require("hardhat");

describe("Counter", () => {
  it("starts where it is told", async () => {
    const counter = await ethers.deployContract("Counter", [7]);
    assert.equal(await counter.count(), 7n);
  });

  it("counts and tells who counted", async () => {
    const [, other] = await ethers.getSigners();
    const counter = await ethers.deployContract("Counter", [0]);
    const receipt = await (await counter.connect(other).add(3)).wait();
    const event = counter.interface.parseLog(receipt.logs[0]);
    assert.equal(event.args.who, other.address);
    assert.equal(event.args.count, 3n);
  });

  it("refuses steps that are too large", async () => {
    const counter = await ethers.deployContract("Counter", [0]);
    await assert.rejects(counter.add(101), /execution reverted/);
    assert.equal(await counter.count(), 0n);
  });
});
