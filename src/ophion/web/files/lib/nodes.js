/* The nodes of this network: role, online or offline, connections, proposer. */

import { attempt, call, RpcError, token } from "./rpc.js";
import { names, toNumber } from "./format.js";
import { addressOfEnode } from "./keccak.js";

const PAUSE_MS = 3000;

export const network = {
  name: "Ophion",
  /** API group of the consensus protocol: "qbft", "ibft", "clique" or null. */
  consensus: null,
  chainId: null,
  nodes: [],
  services: null,
  token: false,
  /** Whether the WebSocket requires a token. Browsers cannot send a token in a handshake. */
  socketToken: false,
  /** Status of the current round, or null. */
  round: null,
};

const listeners = new Set();
export function onNodes(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Read the nodes and services of the network from the gateway. */
export async function readNetwork() {
  const response = await fetch("nodes.json", { headers: { Accept: "application/json" } });
  if (!response.ok) throw new Error(`nodes.json: status ${response.status}`);
  const answer = await response.json();
  network.name = answer.network || "Ophion";
  network.services = answer.services || null;
  network.token = answer.token === true;
  network.socketToken = answer.socketToken === true;
  if (network.token && !token.wanted) token.wanted = true;
  const before = new Map(network.nodes.map((node) => [node.name, node]));
  network.nodes = answer.nodes.map((one) => ({ ...before.get(one.name), ...one, enode: one.enode || before.get(one.name)?.enode || null }));
}

/** Return whether a service exists. Before the list is known, every service counts as existing. */
export const hasService = (name) => !network.services || network.services.includes(name);

const FAMILIES = [["qbft", "qbft_getValidatorsByBlockNumber"], ["ibft", "ibft_getValidatorsByBlockNumber"], ["clique", "clique_getSigners"]];

/** Detect the consensus protocol by the API group that answers. */
export async function readConsensus() {
  const [chainId, ...answers] = await Promise.all([attempt("eth_chainId"), ...FAMILIES.map(([, method]) => attempt(method, ["latest"]))]);
  network.chainId = chainId;
  const at = answers.findIndex((answer) => answer !== null);
  network.consensus = at < 0 ? null : FAMILIES[at][0];
}

export async function validators() {
  const family = FAMILIES.find(([name]) => name === network.consensus);
  return family ? (await call(family[1], ["latest"])).map((address) => address.toLowerCase()) : [];
}

/* --- polling ----------------------------------------------------------------------------------- */

let isLooking = false, hurry = null;

/** Poll the status of all nodes while at least one view subscribes. */
export async function watchNodes() {
  if (isLooking) return;
  isLooking = true;
  while (listeners.size) {
    if (!document.hidden) {
      await look();
      for (const listener of listeners) listener();
    }
    await new Promise((done) => { hurry = done; setTimeout(done, PAUSE_MS); });
  }
  isLooking = false;
}

/** Poll the nodes now instead of at the next interval. */
export const lookSoon = () => hurry?.();

async function look() {
  try {
    await readNetwork();
  } catch (error) {
    for (const node of network.nodes) Object.assign(node, { up: false, problem: error.message });
    return;
  }
  if (network.chainId === null && own()?.up !== false && (!token.wanted || token.value)) await readConsensus().catch(() => null);
  await Promise.all([...network.nodes.map(examine), readRound()]);
  for (const node of network.nodes) {
    node.address = addressOfEnode(node.enode);
    if (node.address) names.set(node.address, node.name);
  }
}

/** Read the consensus status from a validator, or else from this node. Followers do not know the proposer. */
export async function readRound() {
  if (network.consensus === "clique") return readTurn();
  if (!network.consensus) return null;
  const validator = network.nodes.find((node) => node.role === "validator" && !node.problem && node.up !== false);
  const answers = await Promise.all([...new Set([validator?.path ?? "", ""])].map((path) => attempt(`${network.consensus}_getStatus`, [], path).catch(() => null)));
  network.round = answers.find((one) => one?.proposer) || answers.find(Boolean) || null;
  return network.round;
}

/** Find the in-turn Clique signer: signers rotate in the order of their addresses. */
async function readTurn() {
  try {
    const [signers, head] = await Promise.all([validators(), call("eth_blockNumber")]), height = toNumber(head) + 1;
    network.round = { height, round: null, phase: "waiting for the in-turn signer", proposer: signers.sort()[height % signers.length], validators: signers, quorum: 0, members: [], explanation: [] };
  } catch {
    network.round = null;
  }
  return network.round;
}

async function examine(node) {
  if (node.up === false) {
    node.problem = "the node is not running";
    return;
  }
  try {
    const asks = [["eth_blockNumber"], ["admin_nodeInfo"], ["net_peerCount"], ["eth_syncing"], ["web3_clientVersion"], ["admin_peers"], ["txpool_status"], ["debug_metrics"]];
    if (!node.enode) asks.push(["net_enode"]);
    const [number, info, peers, syncing, client, connected, pool, metrics, enode] = await Promise.all(asks.map(([method, params]) => attempt(method, params, node.path)));
    Object.assign(node, {
      problem: null, client, peers: peers === null ? null : toNumber(peers), syncing: syncing || null, pool, metrics,
      number: number === null ? null : toNumber(number), hash: info?.protocols.eth.head,
      connected: (connected || []).map((peer) => ({ id: peer.id.replace(/^0x/, ""), name: peer.name, inbound: peer.network?.inbound })),
    });
    if (enode) node.enode = enode;
    const used = metrics?.process.cpu_seconds_total, now = performance.now() / 1000, last = node.clock;
    node.cpu = used !== undefined && last && now - last.at > 0.5 ? Math.max(0, (used - last.used) / (now - last.at)) : node.cpu ?? null;
    if (used !== undefined) node.clock = { used, at: now };
  } catch (error) {
    node.problem = error instanceof RpcError ? error.message : "no answer";
  }
}

/** Return the node that serves this interface. */
export const own = () => network.nodes.find((node) => node.path === "") || network.nodes.find((node) => node.role === "rpc") || network.nodes[0];
export const idOf = (node) => /^enode:\/\/([0-9a-f]+)@/i.exec(node.enode || "")?.[1]?.toLowerCase() || null;
