/* Health report by the rules of `ophion doctor`, for the nodes that the browser can reach. */

import { seconds, short } from "./format.js";

const CLOCK_OFF_S = 1;

/** Return the lines of the report, each with a level: good, worry, bad. */
export function findings(network, live) {
  const lines = [], online = network.nodes.filter((node) => !node.problem && node.number !== null && node.number !== undefined);
  for (const node of network.nodes) if (node.problem) lines.push(["bad", `${node.name} is offline: ${node.problem}.`]);
  if (live.state === "silent") lines.push(["bad", `No answer from the node${live.reason ? `: ${live.reason.replace(/\.$/, "")}` : ""}.`]);
  const byNumber = new Map();
  for (const node of online) {
    const seen = byNumber.get(node.number);
    if (seen && node.hash && seen !== node.hash) lines.push(["bad", `Nodes have different blocks ${node.number}: the chain has forked, or they are of different networks.`]);
    byNumber.set(node.number, node.hash);
  }
  for (const node of online) {
    if (node.syncing) lines.push(["worry", `${node.name} is synchronising and does not vote until it has caught up.`]);
    else if (node.peers === 0 && network.nodes.length > 1) lines.push(["worry", `${node.name} has no peers: check static nodes, bootnodes and firewalls.`]);
  }
  const newest = Math.max(...online.map((node) => node.number), 0);
  for (const node of online) if (newest - node.number > 3 && !node.syncing) lines.push(["worry", `${node.name} is ${newest - node.number} blocks behind.`]);
  lines.push(...aboutRound(network.round, live));
  if (!lines.some(([mood]) => mood === "bad")) {
    const age = live.head?.timestamp ? Date.now() / 1000 - live.head.timestamp : null;
    if (live.head && live.head.number === 0) lines.push(["good", network.consensus ? "All is ready for the first block." : "All is well. The first transaction makes the first block."]);
    else if (age !== null && (network.consensus === null || age < 60)) lines.push(["good", network.consensus ? "The network is producing blocks." : "All is well."]);
    else if (age !== null) lines.push(["worry", `No block since ${seconds(age)}.`]);
  }
  return lines.slice(0, 8);
}

function aboutRound(round, live) {
  if (!round) return [];
  const lines = [], stands = live.head?.timestamp && Date.now() / 1000 - live.head.timestamp > 15;
  for (const member of round.members || []) {
    const lead = member.clockAheadSeconds;
    if (lead !== null && Math.abs(lead) > CLOCK_OFF_S) lines.push(["worry", `The clock of validator ${short(member.address)} is about ${Math.abs(lead).toFixed(0)} s ${lead > 0 ? "ahead of" : "behind"} others: set it right.`]);
    else if (member.isPassedOver) lines.push(["worry", `Validator ${short(member.address)} is silent and skipped until its next message.`]);
  }
  if (round.quorumReachable === false || stands) for (const sentence of round.explanation || []) lines.push([round.quorumReachable === false ? "bad" : "worry", sentence]);
  return lines;
}
