/* Small live charts: one SVG path over the last minutes, updated in place. */

import { s } from "./dom.js";

const WIDTH = 300, HEIGHT = 64, STEPS = 60;

/** Return a chart of the rate of `field` (per second) over the last `width` seconds: {element, draw(spans)}. */
export function chart(label, field, width = 120) {
  const area = s("path.area"), line = s("path.line");
  const element = s("svg.chart", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label }, area, line);
  return {
    element,
    draw(spans) {
      const points = steps(spans, field, width), most = Math.max(...points, 1e-9);
      const at = (value, index) => `${((index / (STEPS - 1)) * WIDTH).toFixed(1)} ${(HEIGHT - 2 - (value / most) * (HEIGHT - 8)).toFixed(1)}`;
      const path = "M" + points.map(at).join("L");
      line.setAttribute("d", path);
      area.setAttribute("d", `${path}L${WIDTH} ${HEIGHT}L0 ${HEIGHT}Z`);
      return most;
    },
  };
}

/** Return a bar chart with a fixed number of bars, newest on the right: {element, draw(values)}. */
export function bars(label, places = 30) {
  const step = WIDTH / places, all = Array.from({ length: places }, (_, at) => s("rect", { x: (at * step + 1).toFixed(1), width: (step - 2).toFixed(1), y: String(HEIGHT), height: "0", rx: "1.5" }));
  return {
    element: s("svg.chart.bars", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label }, all),
    draw(values, most = Math.max(...values, 1e-9)) {
      all.forEach((bar, at) => {
        const value = values[values.length - places + at] ?? 0, height = value > 0 ? Math.max(2, (Math.min(value, most) / most) * (HEIGHT - 8)) : 0;
        bar.setAttribute("y", (HEIGHT - height).toFixed(1));
        bar.setAttribute("height", height.toFixed(1));
      });
    },
  };
}

/** Resample spans to equal intervals, oldest first. */
export function steps(spans, field, width, now = Date.now() / 1000) {
  const size = width / STEPS, values = new Array(STEPS).fill(0), begin = now - width;
  for (const span of spans) {
    if (span.to <= begin) continue;
    const from = Math.min(span.from, span.to - 0.5), per = span[field] / (span.to - from);
    for (let at = Math.max(0, Math.floor((from - begin) / size)); at < STEPS && begin + at * size < span.to; at++) {
      const left = begin + at * size;
      values[at] += (per * (Math.min(span.to, left + size) - Math.max(from, left))) / size;
    }
  }
  return values.map((value, at) => (values[Math.max(0, at - 1)] + 2 * value + values[Math.min(STEPS - 1, at + 1)]) / 4);
}
