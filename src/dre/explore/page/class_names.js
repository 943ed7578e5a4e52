// Class names on the map.
const MAX_NAMES = 40; // classes with names on the map

// The coordinates of up to 500 points of each class, and how many points were seen of it.
function sampleClasses({ now }) {
  const { names, values } = colorColumn;
  const samples = names.map(() => ({ x: [], y: [], count: 0 })), stride = Math.max(1, Math.floor(n / 20000));
  for (let i = 0; i < n; i += stride) {
    if (highlighted && !highlighted[i]) continue;
    const sample = samples[values[i]];
    sample.count++;
    if (sample.x.length < 500) {
      sample.x.push(now.x[i]);
      sample.y.push(now.y[i]);
    }
  }
  return samples;
}

// Each name at the median of its class; where two would overlap, only the larger class is named.
function drawClassNames(map) {
  const { names } = colorColumn, { ink } = map;
  if (names.length > MAX_NAMES) return;
  const samples = sampleClasses(map), drawn = [];
  const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];
  ink.font = "600 14px system-ui, 'DejaVu Sans', sans-serif";
  ink.textAlign = "center";
  ink.textBaseline = "middle";
  ink.lineJoin = "round";
  ink.lineWidth = 4;
  ink.strokeStyle = cssColor(background);
  ink.fillStyle = cssVariable("--ink");
  const largestFirst = samples.map((_, code) => code).sort((a, b) => samples[b].count - samples[a].count);
  for (const code of largestFirst) {
    if (!samples[code].x.length) continue;
    const px = map.toScreenX(median(samples[code].x)), py = map.toScreenY(median(samples[code].y));
    const text = names[code].length > 28 ? `${names[code].slice(0, 27)}…` : names[code];
    const half = ink.measureText(text).width / 2 + 4;
    if (!map.isOnScreen(px, py) || drawn.some((other) => Math.abs(other.px - px) < other.half + half && Math.abs(other.py - py) < 18)) continue;
    drawn.push({ px, py, half });
    ink.strokeText(text, px, py);
    ink.fillText(text, px, py);
  }
}
