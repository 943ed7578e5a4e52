// The maps on the screen, one or two side by side, and what they share: colors, order, highlight and the next frame.
const colors = new Uint32Array(n); // of the points, 0xBBGGRR
let highlighted = null; // 1 for each highlighted point; null if none is; a new array after every change
let dimmedColor = 0, background = 0;
let hovered = -1, pinned = -1; // rows, or −1
let neighborsShown = null; // { map: ids, data: ids } of the pinned point

// Drawing in random order keeps one class from hiding the others.
const shuffled = (() => {
  const ids = Uint32Array.from({ length: n }, (_, i) => i);
  let seed = 12345;
  for (let i = n - 1; i > 0; i--) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const j = seed % (i + 1), swapped = ids[i];
    ids[i] = ids[j];
    ids[j] = swapped;
  }
  return ids;
})();
let drawOrder = shuffled;

function cssColor(color) {
  return `rgb(${color & 255} ${(color >> 8) & 255} ${(color >> 16) & 255})`;
}

function cssVariable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const maps = [new MapView($("first-map"))];

// At most once per frame, however often something changes.
let requested = false;
function redraw() {
  if (requested || !maps[0].now.x) return;
  requested = true;
  requestAnimationFrame(() => {
    requested = false;
    for (const map of maps) drawMap(map);
    const { dataset } = maps[0].canvas;
    dataset.frames = Number(dataset.frames || 0) + 1; // for scripts that wait for a frame
  });
}

// Call after the colors or the order of the points have changed.
function pointsChanged() {
  redraw();
}

function resizeMaps() {
  for (const map of maps) map.resize();
}

function resetViews() {
  for (const map of maps) map.fitView();
}
