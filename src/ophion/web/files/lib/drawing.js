/* Network diagram: the proposer is highlighted, offline nodes are grey. Redrawn only after a change. */

import { put, s } from "./dom.js";
import { short } from "./format.js";
import { idOf } from "./nodes.js";

const SIZE = 360, RADIUS = 128, MAX_EXTERNAL_PEERS = 24;

export function drawing() {
  const element = s("svg.network", { viewBox: `0 0 ${SIZE} ${SIZE - 40}`, role: "img", "aria-label": "The network" });
  let shown = "";
  return {
    element,
    /** `maker` is the producer of the newest block. It is highlighted when the proposer is unknown. */
    draw(network, maker) {
      const plan = layout(network, maker), mark = JSON.stringify(plan);
      if (mark === shown) return;
      shown = mark;
      element.setAttribute("aria-label", described(plan));
      element.setAttribute("viewBox", plan.dots.length === 1 ? `0 ${SIZE / 2 - 110} ${SIZE} 180` : `0 0 ${SIZE} ${SIZE - 40}`);
      put(element, plan.links.map(link), plan.dots.map(dot));
    },
  };
}

/** Return the positions of nodes, external peers and links, as a value that can be compared. */
export function layout(network, maker) {
  const proposer = (network.round?.proposer || (network.consensus ? maker : null))?.toLowerCase(), members = new Set((network.round?.validators || []).map((one) => one.toLowerCase()));
  const known = network.nodes.map((node) => ({
    id: idOf(node) || node.name, name: node.name, isUp: !node.problem && node.up !== false, isLit: !!proposer && node.address === proposer,
    isMember: node.role === "validator" || members.has(node.address), peers: (node.problem ? [] : node.connected || []).map((peer) => peer.id),
  }));
  const ids = new Set(known.map((one) => one.id));
  const externalPeers = new Map();
  for (const node of network.nodes) for (const peer of node.connected || []) if (!ids.has(peer.id) && externalPeers.size < MAX_EXTERNAL_PEERS) externalPeers.set(peer.id, peer.name);
  const away = [...members].filter((address) => !network.nodes.some((node) => node.address === address));
  const all = [...known,
    ...[...externalPeers].map(([id, name]) => ({ id, name: (name || "").split("/")[0] || short(id), isUp: true, isExternal: true, peers: [] })),
    ...(network.nodes.length > 1 ? [] : away.slice(0, MAX_EXTERNAL_PEERS - externalPeers.size).map((address) => ({ id: address, name: short(address, 6, 4), isUp: !network.round.disconnected?.includes(address), isLit: address === proposer, isMember: true, peers: [] })))];
  const center = { x: SIZE / 2, y: SIZE / 2 - 20 };
  const dots = all.map((one, at) => {
    const turn = (at / all.length) * 2 * Math.PI - Math.PI / 2, far = all.length === 1 ? 0 : RADIUS;
    return { ...one, x: Math.round(center.x + far * Math.cos(turn)), y: Math.round(center.y + far * 0.86 * Math.sin(turn)) };
  });
  const place = new Map(dots.map((one) => [one.id, one])), links = new Map();
  for (const one of dots) for (const id of one.peers) {
    const other = place.get(id);
    if (other && other.isUp) links.set([one.id, id].sort().join(), { x1: one.x, y1: one.y, x2: other.x, y2: other.y, isLit: one.isLit || !!other.isLit });
  }
  return { dots: dots.map(({ peers, ...rest }) => rest), links: [...links.values()] };
}

function described({ dots, links }) {
  const down = dots.filter((one) => !one.isUp).map((one) => one.name), lit = dots.find((one) => one.isLit);
  return `${dots.length} nodes, ${links.length} links${lit ? `; ${lit.name} proposes` : ""}${down.length ? `; missing: ${down.join(", ")}` : ""}`;
}

function link({ x1, y1, x2, y2, isLit }) {
  return s(isLit ? "line.lit" : "line", { x1, y1, x2, y2 });
}

function dot(one) {
  const kind = ["node", one.isUp ? "" : "down", one.isLit ? "lit" : "", one.isExternal ? "external" : "", one.isMember ? "member" : ""].filter(Boolean).join(".");
  const radius = one.isExternal ? 9 : one.isMember ? 15 : 13;
  return s(`g.${kind}`, { transform: `translate(${one.x} ${one.y})` },
    one.isLit ? s("circle.halo", { r: String(radius + 9) }) : null, s("circle.body", { r: String(radius) }),
    s("text", { y: String(radius + 15), "text-anchor": "middle" }, one.name));
}
