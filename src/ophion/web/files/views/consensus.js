/* Consensus: current round, validators, open votes, and a form to vote. */

import { card, facts, h, put, say, table } from "../lib/dom.js";
import { addressLink, blockLink, count, proposerLink, names, seconds, short, toNumber } from "../lib/format.js";
import { live, onChange } from "../lib/live.js";
import { network, onNodes, readConsensus, readRound, validators, watchNodes } from "../lib/nodes.js";
import { attempt, call } from "../lib/rpc.js";

const METHODS = {
  qbft: { votes: "qbft_getPendingVotes", propose: "qbft_proposeValidatorVote", discard: "qbft_discardValidatorVote", metrics: "qbft_getSignerMetrics" },
  ibft: { votes: "ibft_getPendingVotes", propose: "ibft_proposeValidatorVote", discard: "ibft_discardValidatorVote", metrics: "ibft_getSignerMetrics" },
  clique: { votes: "clique_proposals", propose: "clique_propose", discard: "clique_discard", metrics: "clique_getSignerMetrics" },
};
const ROUND_MS = 650;
let members = 0;
const TITLES = { qbft: "QBFT", ibft: "IBFT 2.0", clique: "Clique" };

export async function show(root) {
  if (!network.consensus) await readConsensus();
  if (!network.consensus) return alone(root);
  const methods = METHODS[network.consensus], round = h("div"), list = h("div"), votes = h("div");
  const form = voteForm(methods, () => drawVotes(votes, methods));
  put(root, h("div.title", h("h1", "Consensus"), h("span.pill", TITLES[network.consensus])),
    h("div.columns", card("This round", round), card("Open votes", votes)),
    card(network.consensus === "clique" ? "Signers" : "Validators", list), card("Vote", form.element));
  let isBusy = false;
  const draw = async () => {
    if (isBusy) return;
    isBusy = true;
    try {
      await Promise.all([drawRound(round), drawMembers(list, methods), drawVotes(votes, methods)]);
    } catch (error) {
      say(round, `No answer: ${error.message}`);
    }
    form.fill();
    isBusy = false;
  };
  const ends = [onChange(draw), onNodes(draw)];
  watchNodes();
  await draw();
  // redraw the round often, because its phases are shorter than the block period
  const clock = setInterval(() => { if (!document.hidden && !isBusy) drawRound(round).catch(() => null); }, ROUND_MS);
  return () => {
    clearInterval(clock);
    ends.forEach((end) => end());
  };
}

function alone(root) {
  const made = live.head?.miner;
  put(root, h("h1", "Consensus"), card("No validators here",
    h("p", "This network has no consensus protocol: blocks are produced by ", made && !/^0x0+$/.test(made) ? addressLink(made) : "one node", " when transactions arrive."),
    h("p.soft", "A node of a QBFT, IBFT 2.0 or Clique network shows its validators here, if its group of methods (QBFT, IBFT, CLIQUE) is enabled with --rpc-http-api.")));
  return null;
}

/* --- the round --------------------------------------------------------------------------------- */

async function drawRound(place) {
  const status = await readRound();
  if (!status) {
    put(place, facts([["Next block", count((live.head?.number ?? -1) + 1)], ["Newest by", live.head ? proposerLink(live.head.miner) : "–"]]));
    return;
  }
  put(place, facts([
    ["Height", status.height === null ? "–" : count(status.height)], status.quorum ? ["Round", status.round === null ? "not started" : String(status.round)] : null, ["Phase", status.phase],
    ["Proposer", status.proposer ? addressLink(status.proposer) : "–"], status.quorum ? ["Quorum", `${status.quorum} of ${status.validators.length}`] : null,
  ]), h("div.ballots", ballot("Prepares", status.prepares), ballot("Commits", status.commits), status.round > 0 ? ballot("Round changes", status.roundChanges) : null),
  status.explanation?.length ? h("ul.findings", status.explanation.map((text) => h("li", { "data-mood": status.quorumReachable === false ? "bad" : "" }, text))) : null);
}

function ballot(title, votes) {
  if (!votes) return null;
  const all = [...votes.arrived.map((address) => [address, true]), ...votes.missing.map((address) => [address, false])];
  return h("div.ballot", h("span.soft", title), h("span.dots", { role: "img", "aria-label": `${votes.arrived.length} of ${votes.needed} needed` }, all.map(([address, hasVoted]) => h(hasVoted ? "span.voted" : "span", { title: names.get(address) || address }))), h("span", `${votes.arrived.length}/${votes.needed}`));
}

/* --- validators -------------------------------------------------------------------------------- */

async function drawMembers(place, methods) {
  const [addresses, metrics] = await Promise.all([validators(), attempt(methods.metrics)]);
  members = addresses.length;
  const figures = new Map((metrics || []).map((one) => [one.address.toLowerCase(), one])), views = new Map((network.round?.members || []).map((one) => [one.address.toLowerCase(), one]));
  put(place, table("Validators", ["Validator", "Node", ["Blocks of the last 100", "right"], ["Last block", "right"], "Last seen", "State"], addresses.map((address) => {
    const figure = figures.get(address), view = views.get(address), node = network.nodes.find((one) => one.address === address), last = figure ? toNumber(figure.lastProposedBlockNumber) : 0;
    return [h("a.hash", { href: `#/address/${address}`, title: address }, h("span.wide", address), h("span.narrow", short(address, 8, 4))), node?.name || "", [figure ? count(toNumber(figure.proposedBlockCount)) : "–", "right"], [last ? blockLink(last) : "none", "right"], sign(view, node, last), statePill(address, view, node)];
  }), "No validators."));
}

function sign(view, node, last) {
  if (view && view.lastHeardSecondsAgo !== null) return `message ${seconds(view.lastHeardSecondsAgo)} ago`;
  if (node && !node.problem) return "online now";
  return last ? `block ${count(last)}` : "never";
}

function statePill(address, view, node) {
  if (node?.problem || (view && !view.isConnected && !node)) return h("span.pill.bad", "offline");
  if (network.round?.proposer?.toLowerCase() === address) return h("span.pill.worry", "proposer");
  if (view?.isPassedOver) return h("span.pill.worry", "skipped");
  return h("span.pill.good", "online");
}

/* --- votes ------------------------------------------------------------------------------------- */

const voters = () => {
  const nodes = network.nodes.filter((node) => !node.problem && node.up !== false && (network.nodes.length === 1 || node.role === "validator"));
  return nodes.length ? nodes : network.nodes.filter((node) => !node.problem).slice(0, 1);
};

async function drawVotes(place, methods) {
  const nodes = voters(), answers = await Promise.all(nodes.map((node) => attempt(methods.votes, [], node.path).catch(() => null)));
  if (answers.every((one) => one === null)) return put(place, h("p.soft", "These nodes report no votes: a contract names the validators, or the API group is disabled."));
  const byAddress = new Map();
  answers.forEach((votes, at) => Object.entries(votes || {}).forEach(([address, adds]) => {
    const key = `${adds ? "add" : "remove"} ${address}`;
    byAddress.set(key, [...(byAddress.get(key) || []), nodes[at]]);
  }));
  const needed = Math.floor((members || nodes.length) / 2) + 1;
  return put(place, table("Open votes", ["Vote", "By", h("span.hidden", "Actions")], [...byAddress].map(([key, by]) => {
    const [word, address] = key.split(" ");
    const drop = async () => {
      await Promise.all(by.map((node) => attempt(methods.discard, [address], node.path).catch(() => null)));
      drawVotes(place, methods);
    };
    return [[h("span", word === "add" ? "add " : "remove ", addressLink(address)), "wide"], h("span", { title: by.map((node) => node.name).join(", ") }, `${by.length} of ${needed} needed`), h("button.quiet", { type: "button", onclick: drop }, "Discard")];
  }), "No open votes."));
}

function voteForm(methods, done) {
  const address = h("input", { id: "vote-address", required: true, pattern: "0x[0-9a-fA-F]{40}", placeholder: "0x…", spellcheck: "false", autocomplete: "off", size: "44" });
  const word = h("select", { id: "vote-word" }, h("option", { value: "true" }, "add as validator"), h("option", { value: "false" }, "remove"));
  const boxes = h("div.row"), answer = h("p", { role: "status" });
  const fill = () => {
    if (boxes.childElementCount !== voters().length) put(boxes, voters().map((node) => h("label.line", h("input", { type: "checkbox", checked: true, value: node.path, name: node.name }), node.name)));
  };
  const submit = async (event) => {
    event.preventDefault();
    const chosen = [...boxes.querySelectorAll("input:checked")];
    const outcomes = await Promise.all(chosen.map((box) => call(methods.propose, [address.value.trim().toLowerCase(), word.value === "true"], box.value).then(() => null, (error) => `${box.name}: ${error.message}`)));
    const problems = outcomes.filter(Boolean);
    answer.className = problems.length ? "bad" : "good";
    say(answer, problems.length ? problems.join("; ") : chosen.length ? `${chosen.length === 1 ? "One node votes" : `${chosen.length} nodes vote`} now. More than half of the validators must.` : "Choose at least one node.");
    done();
  };
  const element = h("form.votes", { onsubmit: submit }, h("div.row", h("label", "Address", address), h("label", "Vote", word)), h("fieldset", h("legend", "Nodes that vote"), boxes), h("div.row", h("button.main", { type: "submit" }, "Vote")), answer);
  return { element, fill };
}
