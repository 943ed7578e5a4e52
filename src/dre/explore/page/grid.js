// A grid over a map finds the points near the pointer and inside a lasso; it is built anew after points have moved.
const CELLS = 256; // on each side

const cellOf = (value, low, high) => Math.max(0, Math.min(CELLS - 1, Math.floor(((value - low) / (high - low || 1)) * CELLS)));
const columnOf = ({ box }, x) => cellOf(x, box.left, box.right);
const lineOf = ({ box }, y) => cellOf(y, box.bottom, box.top);

function buildGrid(map) {
  const starts = new Uint32Array(CELLS * CELLS + 1), members = new Uint32Array(n), cells = new Uint16Array(n), { x, y } = map.now;
  for (let i = 0; i < n; i++) {
    cells[i] = lineOf(map, y[i]) * CELLS + columnOf(map, x[i]);
    starts[cells[i] + 1]++;
  }
  for (let c = 0; c < CELLS * CELLS; c++) starts[c + 1] += starts[c];
  const next = starts.slice(0, -1);
  for (let i = 0; i < n; i++) members[next[cells[i]]++] = i;
  return { starts, members };
}

// Calls visit(i) for every point in the cells that touch this part of the map.
function visitNear(map, left, right, bottom, top, visit) {
  map.grid = map.grid || buildGrid(map);
  const { starts, members } = map.grid, from = columnOf(map, left), to = columnOf(map, right), last = lineOf(map, top);
  for (let line = lineOf(map, bottom); line <= last; line++) {
    const end = starts[line * CELLS + to + 1];
    for (let k = starts[line * CELLS + from]; k < end; k++) visit(members[k]);
  }
}

// The nearest point within this many pixels, or −1. If some points are highlighted, only those count.
function nearestPoint(map, px, py, reach = 8) {
  const radius = reach / map.view.scale, cx = map.toMapX(px), cy = map.toMapY(py), { x, y } = map.now;
  let nearest = -1, least = radius * radius;
  visitNear(map, cx - radius, cx + radius, cy - radius, cy + radius, (i) => {
    if (highlighted && !highlighted[i]) return;
    const dx = x[i] - cx, dy = y[i] - cy, distance = dx * dx + dy * dy;
    if (distance > least) return;
    least = distance;
    nearest = i;
  });
  return nearest;
}

// 1 for each point inside a polygon of pixels, by the even-odd rule.
function pointsInside(map, polygon) {
  const inside = new Uint8Array(n), { x, y } = map.now;
  const xs = polygon.map(([px]) => map.toMapX(px)), ys = polygon.map(([, py]) => map.toMapY(py));
  visitNear(map, Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys), (i) => {
    for (let a = 0, b = xs.length - 1; a < xs.length; b = a++) {
      if (ys[a] > y[i] !== ys[b] > y[i] && x[i] < ((xs[b] - xs[a]) * (y[i] - ys[a])) / (ys[b] - ys[a]) + xs[a]) inside[i] ^= 1;
    }
  });
  return inside;
}
