// The visible part of the map: its center and scale in pixels, and the point under the pointer.
const view = { x: 0.5, y: 0.5, scale: 500, home: 500, width: 1, height: 1, ratio: 1 };
const now = { x: null, y: null }; // current coordinates of the points

// From coordinates to pixels of the screen, and back.
const toScreenX = (x) => (x - view.x) * view.scale + view.width / 2;
const toScreenY = (y) => (view.y - y) * view.scale + view.height / 2;
const toMapX = (px) => (px - view.width / 2) / view.scale + view.x;
const toMapY = (py) => view.y - (py - view.height / 2) / view.scale;

// Zoom by a factor; the map under (px, py) stays in place.
function zoom(factor, px = view.width / 2, py = view.height / 2) {
  const x = toMapX(px), y = toMapY(py);
  view.scale = Math.min(view.home * 500, Math.max(view.home / 4, view.scale * factor));
  view.x = x - (px - view.width / 2) / view.scale;
  view.y = y + (py - view.height / 2) / view.scale;
  redraw();
}

// Show the given rows, or all; of many rows, a few outliers may stay outside.
function fitView(ids = null) {
  const range = (values) => {
    const count = ids ? ids.length : n, stride = Math.max(1, Math.floor(count / 20000)), sample = [];
    for (let j = 0; j < count; j += stride) sample.push(values[ids ? ids[j] : j]);
    sample.sort((a, b) => a - b);
    const outliers = sample.length > 200 ? Math.floor(sample.length / 1000) : 0;
    return [sample[outliers], sample[sample.length - 1 - outliers]];
  };
  const [left, right] = range(now.x), [bottom, top] = range(now.y);
  view.x = (left + right) / 2;
  view.y = (bottom + top) / 2;
  const width = Math.max(right - left, 1e-4), height = Math.max(top - bottom, 1e-4);
  view.scale = Math.min(view.width / width, view.height / height) * 0.9;
  if (!ids) view.home = view.scale;
  view.scale = Math.min(view.scale, view.home * 200);
}

// A grid over the map finds points near the pointer; it is rebuilt after points have moved.
const CELLS = 256;
let grid = null;

function cellOf(value) {
  return Math.max(0, Math.min(CELLS - 1, Math.floor(value * CELLS)));
}

function buildGrid() {
  const starts = new Uint32Array(CELLS * CELLS + 1), members = new Uint32Array(n), { x, y } = now;
  for (let i = 0; i < n; i++) starts[cellOf(y[i]) * CELLS + cellOf(x[i]) + 1]++;
  for (let c = 0; c < CELLS * CELLS; c++) starts[c + 1] += starts[c];
  const next = starts.slice(0, -1);
  for (let i = 0; i < n; i++) members[next[cellOf(y[i]) * CELLS + cellOf(x[i])]++] = i;
  return { starts, members };
}

// The nearest point within this many pixels, or −1. If some points are highlighted, only those count.
function nearestPoint(px, py, reach = 8) {
  grid = grid || buildGrid();
  const radius = reach / view.scale, cx = toMapX(px), cy = toMapY(py);
  let nearest = -1, least = radius * radius;
  for (let row = cellOf(cy - radius); row <= cellOf(cy + radius); row++) {
    for (let cell = row * CELLS + cellOf(cx - radius); cell <= row * CELLS + cellOf(cx + radius); cell++) {
      for (let k = grid.starts[cell]; k < grid.starts[cell + 1]; k++) {
        const i = grid.members[k];
        if (highlighted && !highlighted[i]) continue;
        const dx = now.x[i] - cx, dy = now.y[i] - cy, distance = dx * dx + dy * dy;
        if (distance <= least) {
          least = distance;
          nearest = i;
        }
      }
    }
  }
  return nearest;
}
