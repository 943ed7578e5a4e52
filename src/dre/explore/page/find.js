// Which point is under the pointer: a grid over the map, made anew when points have moved.
const CELLS = 256;
let grid = null;

function cellOf(value) {
  return Math.max(0, Math.min(CELLS - 1, Math.floor(value * CELLS)));
}

function sorted() {
  const starts = new Uint32Array(CELLS * CELLS + 1), members = new Uint32Array(n), { x, y } = now;
  for (let i = 0; i < n; i++) starts[cellOf(y[i]) * CELLS + cellOf(x[i]) + 1]++;
  for (let c = 0; c < CELLS * CELLS; c++) starts[c + 1] += starts[c];
  const next = starts.slice(0, -1);
  for (let i = 0; i < n; i++) members[next[cellOf(y[i]) * CELLS + cellOf(x[i])]++] = i;
  return { starts, members };
}

function moved() {
  grid = null;
}

// The nearest within so many pixels, among those that stand out where some do; −1 if there is none.
function nearestTo(px, py, reach = 8) {
  grid = grid || sorted();
  const far = reach / view.scale, cx = placeAcross(px), cy = placeDown(py);
  let best = -1, least = far * far;
  for (let row = cellOf(cy - far); row <= cellOf(cy + far); row++) {
    for (let cell = row * CELLS + cellOf(cx - far); cell <= row * CELLS + cellOf(cx + far); cell++) {
      for (let at = grid.starts[cell]; at < grid.starts[cell + 1]; at++) {
        const i = grid.members[at];
        if (lit && !lit[i]) continue;
        const dx = now.x[i] - cx, dy = now.y[i] - cy, apart = dx * dx + dy * dy;
        if (apart <= least) {
          least = apart;
          best = i;
        }
      }
    }
  }
  return best;
}
