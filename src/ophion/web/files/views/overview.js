/* Overview: head, rates, nodes and health of the network. */

import { card, h, put, say, table } from "../lib/dom.js";
import { addressLink, ago, blockLink, brief, bytes, count, ether, proposerLink, rate, seconds, toNumber, txLink } from "../lib/format.js";
import { blockTime, lateness, live, onChange, ratesOver } from "../lib/live.js";
import { network, onNodes, own, readRound, watchNodes } from "../lib/nodes.js";
import { bars, chart } from "../lib/chart.js";
import { drawing } from "../lib/drawing.js";
import { findings } from "../lib/doctor.js";
import { call } from "../lib/rpc.js";

const ROWS = 8, WIDTH_S = 120;

function tile(title, extra) {
  const value = h("p.figure", "–"), note = h("p.note", " ");
  return { element: h("section.card.tile", h("h2", title), value, note, extra || null), value, note };
}

export function show(root) {
  const charts = [chart("Transactions per second over the last two minutes", "txs", WIDTH_S), chart("Gas per second over the last two minutes", "gas", WIDTH_S)];
  const amounts = bars("Transactions in the last blocks"), intervals = bars("Seconds between the last blocks");
  const head = tile("Head", amounts.element), time = tile("Block time", intervals.element), txs = tile("Transactions per second", charts[0].element), gas = tile("Gas per second", charts[1].element);
  const pool = tile("Pool"), peers = tile("Peers"), nodesUp = tile("Nodes"), disk = tile("Disk"), memory = tile("Memory"), version = tile("Version");
  const picture = drawing(), doctor = h("ul.findings"), blocks = h("div"), transactions = h("div"), all = h("div");
  put(root, h("h1.hidden", "Overview"),
    h("div.tiles", head.element, time.element, txs.element, gas.element),
    h("div.columns",
      card("Network", picture.element),
      h("div.stack", card("Health report", doctor), h("div.tiles.small", nodesUp.element, peers.element, pool.element, disk.element, memory.element, version.element))),
    card("Nodes", all),
    h("div.columns", h("section.card", h("header", h("h2", "Newest blocks"), h("a", { href: "#/blocks" }, "all")), blocks), card("Latest transactions", transactions)));

  let listed = null, shownHead = null;
  const figures = () => {
    const block = live.head;
    say(head.value, block ? count(block.number) : live.state === "silent" ? "–" : "…");
    say(head.note, block ? ago(block.timestamp) : live.reason || "waiting for the node");
    const period = blockTime(), late = lateness();
    say(time.value, period === null ? "–" : seconds(period));
    say(time.note, late !== null ? `arrived ${seconds(late)} late` : period === null ? "too few blocks yet" : `over the last ${Math.min(30, live.blocks.length)} blocks`);
    const past = [...live.blocks].reverse();
    amounts.draw(past.map((one) => one.txs || 0));
    const pauses = past.slice(1).map((one, at) => (past[at].timestamp ? (one.timestamp - past[at].timestamp) / Math.max(1, one.number - past[at].number) : 0));
    intervals.draw(pauses, Math.max(1, 2 * [...pauses].sort((a, b) => a - b)[pauses.length >> 1] || 0));
    const now = ratesOver(20);
    say(txs.value, rate(now.txs));
    say(txs.note, `maximum ${brief(charts[0].draw(live.spans))} in two minutes`);
    say(gas.value, brief(now.gas));
    charts[1].draw(live.spans);
    say(gas.note, block && block.gasLimit ? `newest block ${((block.gasUsed / block.gasLimit) * 100).toFixed(block.gasUsed / block.gasLimit < 0.1 ? 2 : 0)} % full` : " ");
  };
  const lists = () => {
    if (live.head?.hash === shownHead) return;
    shownHead = live.head?.hash;
    put(blocks, blockTable(live.blocks.slice(0, ROWS)));
    newest();
  };
  const newest = async () => {
    if (!live.head) return;
    const places = live.blocks.flatMap((block) => Array.from({ length: Math.min(ROWS, block.txs ?? 0) }, (_, at) => [block.hash, "0x" + at.toString(16)])).slice(0, ROWS);
    const none = live.head.number === 0 ? "The chain has only its genesis block. Transactions appear here when a client sends one." : "The newest blocks are empty.";
    const wanted = places.join() || none;
    if (listed === wanted) return;
    listed = wanted;
    if (!places.length) return put(transactions, h("p.soft", none));
    try {
      const found = await Promise.all(places.map((place) => call("eth_getTransactionByBlockHashAndIndex", place)));
      if (listed === wanted) put(transactions, transactionTable(found.filter(Boolean)));
    } catch {
      listed = null; // after an error, read the transactions again at the next block
    }
  };
  const nodes = () => {
    const me = own(), online = network.nodes.filter((node) => !node.problem);
    picture.draw(network, live.head?.miner);
    put(doctor, findings(network, live).map(([mood, text]) => h("li", { "data-mood": mood }, text)));
    put(all, nodeTable(network.nodes));
    const metrics = me?.metrics;
    say(pool.value, me?.pool ? count(toNumber(me.pool.pending)) : "–");
    say(pool.note, me?.pool ? `${count(toNumber(me.pool.queued))} queued${metrics ? `, limit ${brief(metrics.transaction_pool.transactions_limit)}` : ""}` : "needs the group TXPOOL");
    say(peers.value, me?.peers ?? "–");
    say(peers.note, metrics?.ethereum.peer_limit ? `of at most ${metrics.ethereum.peer_limit}` : "no peers");
    const size = metrics?.blockchain.database_bytes;
    say(disk.value, size ? bytes(size) : "–");
    say(disk.note, size ? "database" : metrics ? "not measured" : "needs the group DEBUG");
    say(memory.value, metrics ? bytes(metrics.process.resident_memory_bytes) : "–");
    say(memory.note, metrics ? "resident" : "needs the group DEBUG");
    say(nodesUp.value, `${online.length} of ${network.nodes.length}`);
    say(nodesUp.note, online.length === network.nodes.length ? "all online" : "some are offline");
    const versions = [...new Set(online.map((node) => node.client?.split("/").slice(0, 2).join(" ")).filter(Boolean))];
    say(version.value, versions[0]?.split(" ")[1] || "–");
    say(version.note, versions.length > 1 ? `and ${versions.slice(1).join(", ")}` : versions[0]?.split(" ")[0] || " ");
  };

  figures();
  lists();
  nodes();
  const turn = async () => {
    await readRound();
    picture.draw(network, live.head?.miner);
  };
  const ends = [onChange(() => { figures(); if (live.head?.hash !== shownHead) turn(); lists(); }), onNodes(nodes)];
  watchNodes();
  const clock = setInterval(() => { if (!document.hidden) figures(); }, 1000);
  return () => {
    clearInterval(clock);
    for (const end of ends) end();
  };
}

function nodeTable(nodes) {
  const best = Math.max(0, ...nodes.map((node) => node.number ?? 0)), of = (node, read) => (node.problem || !node.metrics ? "–" : read(node.metrics));
  return table("Nodes", ["Node", "Role", ["Head", "right"], ["Behind", "right"], ["Peers", "right"], ["Pool", "right"], ["CPU", "right"], ["Memory", "right"], ["Disk", "right"], "State"], nodes.map((node) => [
    node.address ? addressLink(node.address) : h("b", node.name), node.role, [node.number === undefined || node.number === null ? "–" : count(node.number), "right"], [node.problem ? "–" : count(best - (node.number ?? 0)), "right"],
    [node.problem ? "–" : String(node.peers ?? "–"), "right"], [node.problem || !node.pool ? "–" : count(toNumber(node.pool.pending)), "right"], [node.problem || node.cpu === null || node.cpu === undefined ? "–" : `${(node.cpu * 100).toFixed(0)} %`, "right"],
    [of(node, (metrics) => bytes(metrics.process.resident_memory_bytes)), "right"], [of(node, (metrics) => bytes(metrics.blockchain.database_bytes || 0)), "right"],
    node.problem ? h("span.pill.bad", "offline") : node.syncing ? h("span.pill.worry", "syncing") : h("span.pill.good", "online")]));
}

function blockTable(blocks) {
  return table("Newest blocks", ["Block", "Time", ["Transactions", "right"], ["Full", "right"], "Proposer"], blocks.map((block) => [
    blockLink(block.number), ago(block.timestamp), [block.txs === null ? "…" : count(block.txs), "right"],
    [`${block.gasLimit ? ((block.gasUsed / block.gasLimit) * 100).toFixed(0) : 0} %`, "right"], proposerLink(block.miner)]));
}

function transactionTable(transactions) {
  return table("Latest transactions", ["Transaction", "From", "To", ["Value", "right"]], transactions.map((one) => [
    txLink(one.hash), addressLink(one.from), one.to ? addressLink(one.to) : h("span.soft", "new contract"), [ether(one.value), "right"]]));
}
