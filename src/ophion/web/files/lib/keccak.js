/* Keccak-256 in 32-bit halves, for selectors of functions, topics of events and addresses of nodes. */

const ROUNDS = 24, RATE = 136;
const HIGH = new Int32Array(ROUNDS), LOW = new Int32Array(ROUNDS);
const SHIFT = new Uint8Array(25), PLACE = new Uint8Array(25);

/* Round constants, rotations and lane positions, computed as in FIPS 202. */
(function prepare() {
  let register = 1;
  for (let round = 0; round < ROUNDS; round++) {
    for (let power = 0; power < 7; power++) {
      if (register & 1) {
        const bit = (1 << power) - 1;
        if (bit < 32) LOW[round] ^= 1 << bit;
        else HIGH[round] ^= 1 << (bit - 32);
      }
      register = (register << 1) ^ (register & 0x80 ? 0x171 : 0);
    }
  }
  for (let x = 1, y = 0, step = 0; step < 24; step++) {
    SHIFT[x + 5 * y] = (((step + 1) * (step + 2)) / 2) % 64;
    [x, y] = [y, (2 * x + 3 * y) % 5];
  }
  for (let x = 0; x < 5; x++) for (let y = 0; y < 5; y++) PLACE[x + 5 * y] = y + 5 * ((2 * x + 3 * y) % 5);
})();

function permute(high, low) {
  const columnHigh = new Int32Array(5), columnLow = new Int32Array(5), movedHigh = new Int32Array(25), movedLow = new Int32Array(25);
  for (let round = 0; round < ROUNDS; round++) {
    for (let x = 0; x < 5; x++) {
      columnHigh[x] = high[x] ^ high[x + 5] ^ high[x + 10] ^ high[x + 15] ^ high[x + 20];
      columnLow[x] = low[x] ^ low[x + 5] ^ low[x + 10] ^ low[x + 15] ^ low[x + 20];
    }
    for (let x = 0; x < 5; x++) {
      const next = (x + 1) % 5, before = (x + 4) % 5;
      const turnHigh = columnHigh[before] ^ ((columnHigh[next] << 1) | (columnLow[next] >>> 31));
      const turnLow = columnLow[before] ^ ((columnLow[next] << 1) | (columnHigh[next] >>> 31));
      for (let at = x; at < 25; at += 5) {
        high[at] ^= turnHigh;
        low[at] ^= turnLow;
      }
    }
    for (let at = 0; at < 25; at++) {
      const bits = SHIFT[at] & 31, swap = SHIFT[at] >= 32;
      const first = swap ? low[at] : high[at], second = swap ? high[at] : low[at];
      movedHigh[PLACE[at]] = bits ? (first << bits) | (second >>> (32 - bits)) : first;
      movedLow[PLACE[at]] = bits ? (second << bits) | (first >>> (32 - bits)) : second;
    }
    for (let y = 0; y < 25; y += 5) {
      for (let x = 0; x < 5; x++) {
        const one = y + ((x + 1) % 5), two = y + ((x + 2) % 5);
        high[y + x] = movedHigh[y + x] ^ (~movedHigh[one] & movedHigh[two]);
        low[y + x] = movedLow[y + x] ^ (~movedLow[one] & movedLow[two]);
      }
    }
    high[0] ^= HIGH[round];
    low[0] ^= LOW[round];
  }
}

/** Hash bytes, or the UTF-8 encoding of a text. Returns bytes. */
export function keccak(message) {
  const input = typeof message === "string" ? new TextEncoder().encode(message) : message;
  const padded = new Uint8Array(Math.ceil((input.length + 1) / RATE) * RATE);
  padded.set(input);
  padded[input.length] = 1;
  padded[padded.length - 1] |= 0x80;
  const view = new DataView(padded.buffer), high = new Int32Array(25), low = new Int32Array(25);
  for (let start = 0; start < padded.length; start += RATE) {
    for (let lane = 0; lane < RATE / 8; lane++) {
      low[lane] ^= view.getInt32(start + lane * 8, true);
      high[lane] ^= view.getInt32(start + lane * 8 + 4, true);
    }
    permute(high, low);
  }
  const out = new DataView(new ArrayBuffer(32));
  for (let lane = 0; lane < 4; lane++) {
    out.setInt32(lane * 8, low[lane], true);
    out.setInt32(lane * 8 + 4, high[lane], true);
  }
  return new Uint8Array(out.buffer);
}

export const keccakHex = (message) => "0x" + Array.from(keccak(message), (one) => one.toString(16).padStart(2, "0")).join("");

/** Return the address of the public key in an enode URL. */
export function addressOfEnode(enode) {
  const id = /^enode:\/\/([0-9a-f]{128})@/i.exec(enode || "")?.[1];
  if (!id) return null;
  return "0x" + keccakHex(Uint8Array.from(id.match(/../g), (pair) => parseInt(pair, 16))).slice(26);
}
